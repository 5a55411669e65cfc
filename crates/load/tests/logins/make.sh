#!/bin/sh
# Makes the files beside it, which are valid for a hundred years: what the tests
# need and `rcgen` cannot make. Needs OpenSSL, and Python with `cryptography`.
# None of these keys protects anything. Usage: ./make.sh, in this folder.
set -e
days=36500
ec() { openssl ecparam -name "$1" -genkey -noout -out "$2"; }

# A CA, and a certificate as mosquitto-tls(7) makes it: X.509 version 1.
ec prime256v1 ca.key
openssl req -x509 -new -key ca.key -days $days -subj "/CN=pubmark test CA" -out ca.crt
ec prime256v1 v1.key
openssl req -new -key v1.key -subj "/CN=localhost" -out v1.csr
openssl x509 -req -in v1.csr -CA ca.crt -CAkey ca.key -set_serial 1 -days $days -out v1.crt

# Keys of each form (v1.key is SEC1), and one that the library does not know.
openssl req -x509 -new -key v1.key -days $days -subj "/CN=client" -out ec.crt
openssl pkcs8 -topk8 -nocrypt -in v1.key -out pkcs8.key
openssl pkcs8 -topk8 -passout pass:secret -in v1.key -out encrypted-pkcs8.key
openssl ec -aes128 -passout pass:secret -in v1.key -out encrypted-sec1.key
openssl genrsa -traditional -out pkcs1.key 2048
openssl req -x509 -new -key pkcs1.key -days $days -subj "/CN=client" -out rsa.crt
ec secp521r1 p521.key
rm -f ca.key v1.csr

# NATS: an operator, an account and a user, who vouch for each other.
python3 nats.py
