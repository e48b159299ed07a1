package outside

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Certificate writes cert.pem and key.pem for 127.0.0.1, those of net/http/httptest, to dir and returns a client that
// trusts them.
func Certificate(t *testing.T, dir string) *http.Client {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	trust, certificate := server.Client().Transport.(*http.Transport).TLSClientConfig, server.TLS.Certificates[0]
	server.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	t.Cleanup(client.CloseIdleConnections)
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return client
}
