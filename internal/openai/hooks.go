package openai

import "time"

// Hooks are what the caller of a lane wants of one request beside its figures. The zero value wants nothing.
type Hooks struct {
	// Sent is called once, when the message was written or will not be: its bytes are the caller's again, while the
	// answer is on the way.
	Sent func()
	// Read is called each time that some of a stream was read and acted upon, with the time of the read. It must be quick.
	Read func(now time.Time)
	// Again gives the message once more, for a retry after Sent.
	Again func() ([]byte, error)

	// Cancel ends the request CancelAfter after its message was written, by closing the connection: its outcome is
	// cancelled. An answer that has come to its end by then, or a failure, stays what it is. A retry counts from its own write.
	Cancel      bool
	CancelAfter time.Duration // 0: the message is written, and nothing read

	// Keep puts the answer's content into req.Text, up to 4 MiB of it, as it was said: without reasoning and the arguments
	// of tool calls. Of several choices it is all their contents in the order in which they came.
	Keep bool

	// Count counts the tokens of a text; nil: there is no tokenizer. It is asked, after the end of the answer, where the server
	// counted none: then the usage is that of content, reasoning and arguments, and its source text. It keeps the content
	// as Keep does. A text that was cut is not counted.
	Count func(text []byte) int
}
