package web

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net/http"
	"testing"

	"replayd/test/outside"
)

const certified = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"

// Over HTTP/2 a frame has at most 16 KiB, and a connection 16 requests at once: net/http would take 1 MiB and 250.
func TestFramesAreBounded(t *testing.T) {
	dir := t.TempDir()
	trust := outside.Certificate(t, dir).Transport.(*http.Transport).TLSClientConfig.Clone()
	s := serve(t, Options{ConfigFile: write(t, dir, "web.yaml", certified)})
	trust.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", s.listener.Addr().String(), trust)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		t.Fatal("want HTTP/2")
	}
	const settings, goAway = 4, 7
	frame := func(length int, kind byte, stream uint32) []byte {
		head := []byte{byte(length >> 16), byte(length >> 8), byte(length), kind, 0}
		return binary.BigEndian.AppendUint32(head, stream)
	}
	if _, err := conn.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(0, settings, 0)...)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(frame(16<<10+1, 1, 1)); err != nil { // the head of HEADERS
		t.Fatal(err)
	}
	told := map[uint16]uint32{}
	var why uint32
	for head := make([]byte, 9); why == 0; {
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, body); err != nil {
			t.Fatal(err)
		}
		switch head[3] {
		case settings:
			for ; len(body) >= 6; body = body[6:] {
				told[binary.BigEndian.Uint16(body)] = binary.BigEndian.Uint32(body[2:])
			}
		case goAway:
			why = binary.BigEndian.Uint32(body[4:])
		}
	}
	if told[3] != 16 || told[5] != 16<<10 || why != 6 { // MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE, FRAME_SIZE_ERROR
		t.Errorf("want 16 streams, frames of 16 KiB and the end for a larger one, got %v and error %d", told, why)
	}
}
