// Empty: lets nanotime be declared without a body.
