// SPDX-License-Identifier: Apache-2.0

// Package tlsid is an agent's TLS identity: a self-signed certificate that stays in its state folder. There is no
// authority to ask; the broker tells the sender which fingerprint the receiver has, and the sender accepts no other.
package tlsid

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"time"

	"bandwidthbroker/agents/internal/atomicfile"
)

// Identity is a certificate with its key, and what the sender pins.
type Identity struct {
	Certificate tls.Certificate
	Fingerprint string // SHA-256 of the certificate, hex
}

// Load reads the identity, or makes one the first time.
func Load(path string) (*Identity, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if raw, err = generate(); err == nil {
			err = atomicfile.Write(path, raw, 0o600, atomicfile.PowerLoss)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("TLS identity: %w", err)
	}
	certificate, err := tls.X509KeyPair(raw, raw)
	if err != nil {
		return nil, fmt.Errorf("TLS identity %s: %w", path, err)
	}
	return &Identity{certificate, fingerprint(certificate.Certificate[0])}, nil
}

func generate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "bwb-agent"},
		NotBefore:    time.Unix(0, 0), // it is pinned, so its dates mean nothing; a host with a wrong clock must work
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(out, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Serve is the receiver's configuration.
func (id *Identity) Serve() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.Certificate}, SessionTicketsDisabled: true}
}

// Pin is the sender's configuration: this certificate, whatever it says of itself, and no other.
func Pin(want string) *tls.Config {
	want = strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(want, ":", ""), "sha256"))
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // replaced by the comparison below
		VerifyConnection: func(state tls.ConnectionState) error {
			got := fingerprint(state.PeerCertificates[0].Raw)
			if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
				return fmt.Errorf("certificate has fingerprint %s, expected %s", got, want)
			}
			return nil
		},
	}
}
