package main

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates returns Mozilla's root certificates, as PEM. The Dockerfile takes Debian's file of them from the image that it builds in,
// which is another one each month; the bundle of the Go project is a version in go.sum. A root that Mozilla trusts only for certificates
// from before some day is left out, because PEM cannot say so.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// A bytes.Buffer accepts every write, and the block has no headers that could be wrong.
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}
