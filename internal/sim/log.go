package sim

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A LogEntry is one finished request as the server saw it: a line of JSON in Options.Log, in the order in which
// requests ended. Instants are nanoseconds since the Unix epoch, by this machine's wall clock.
type LogEntry struct {
	ID           string  `json:"id"`  // X-Request-Id, else the engine's own
	API          string  `json:"api"` // chat or completions
	Stream       bool    `json:"stream"`
	UserAgent    string  `json:"user_agent"`
	BodySHA256   string  `json:"body_sha256"` // the first 12 hexadecimal digits; "" if the body was not complete
	Messages     int     `json:"messages"`    // of a chat; 0 if the body was not understood
	Arrival      int64   `json:"arrival"`     // start of the handler, after the headers and before the body
	PromptTokens int     `json:"prompt_tokens"`
	CachedTokens int     `json:"cached_tokens"`
	MaxTokens    int     `json:"max_tokens"`    // the limit that the request asked for; 0 if none
	OutputTokens int     `json:"output_tokens"` // generated; a stream has written them all, whether or not they were read
	Status       int     `json:"status"`        // of HTTP; 0 if the client left before there was one
	Outcome      string  `json:"outcome"`       // gone: the client left, at the instant End
	End          int64   `json:"end"`
	Chunks       []int64 `json:"chunks,omitempty"` // just before the write of each chunk with content; one for an unstreamed answer
}

// journal writes entries, one at a time.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

func (j *journal) enter(x *exchange) {
	if j == nil {
		return
	}
	x.entry.Stream, x.entry.Messages = x.request.stream, x.request.messages
	x.entry.PromptTokens, x.entry.CachedTokens = x.request.tokens, x.cached
	x.entry.MaxTokens, x.entry.OutputTokens = x.request.asked, x.sent
	x.entry.End = time.Now().UnixNano()
	line, err := json.Marshal(&x.entry)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		_, _ = j.out.Write(append(line, '\n')) // a log that cannot be written does not stop the engine
	}
}
