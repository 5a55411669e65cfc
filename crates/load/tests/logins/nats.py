"""Makes nats.conf-part and user.creds: what `nsc` makes, from fixed seeds."""
import base64, hashlib, json
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PREFIX = {"operator": 14 << 3, "account": 0, "user": 20 << 3}


def text(raw):
    crc = 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")


class Key:
    def __init__(self, kind):
        self.raw = hashlib.sha256(b"pubmark " + kind.encode()).digest()
        self.key = Ed25519PrivateKey.from_private_bytes(self.raw)
        public = self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.name = text(bytes([PREFIX[kind]]) + public)
        prefix = PREFIX[kind]
        self.seed = text(bytes([18 << 3 | prefix >> 5, (prefix & 31) << 3]) + self.raw)


def token(issuer, subject, name, nats):
    encoded = lambda value: base64.urlsafe_b64encode(value).decode().rstrip("=")
    claims = {"jti": "", "iat": 1700000000, "iss": issuer.name, "name": name, "sub": subject.name, "nats": nats}
    identity = json.dumps(claims, separators=(",", ":")).encode()
    claims["jti"] = base64.b32encode(hashlib.sha256(identity).digest()).decode().rstrip("=")
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    body = ".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (head, claims))
    return body + "." + encoded(issuer.key.sign(body.encode()))


operator, account, user = Key("operator"), Key("account"), Key("user")
most = {"subs": -1, "data": -1, "payload": -1}
limits = most | {"imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
of_operator = token(operator, operator, "pubmark", {"type": "operator", "version": 2})
of_account = token(operator, account, "tests", {"limits": limits, "default_permissions": {"pub": {}, "sub": {}}, "type": "account", "version": 2})
of_user = token(account, user, "tester", {"pub": {}, "sub": {}} | most | {"type": "user", "version": 2})
with open("nats.conf", "w") as file:
    file.write(f"operator: {of_operator}\nresolver: MEMORY\nresolver_preload: {{ {account.name}: {of_account} }}\n")
with open("user.creds", "w") as file:
    file.write(f"-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n")
    file.write("************************* IMPORTANT *************************\nNKEY Seed printed below can be used to sign and prove identity.\n\n")
    file.write(f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
with open("account.nk", "w") as file:
    file.write(account.seed + "\n")
with open("user.nk", "w") as file:
    file.write(user.seed + "\n")
with open("user.pub", "w") as file:
    file.write(user.name + "\n")
