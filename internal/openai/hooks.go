package openai

import "time"

// Hooks are called, or change what is done, during one request of a lane. The zero value does nothing.
type Hooks struct {
	// Sent is called once, when the message was written or will not be written. The caller may reuse its bytes then,
	// before the answer has come.
	Sent func()
	// Read is called after each read of a stream was handled, with the time of the read. It must be quick.
	Read func(now time.Time)
	// Again returns the HTTP message for a second attempt, as http.Request.GetBody does. Sent has been called before.
	Again func() ([]byte, error)

	// Cancel ends the request CancelAfter after its message was written, by closing the connection: its outcome is
	// cancelled. An answer that has come to its end by then, or a failure, stays what it is. A retry counts from its own write.
	Cancel      bool
	CancelAfter time.Duration // 0: the message is written and nothing is read

	// Keep stores the answer's content in req.Text, up to 4 MiB, without reasoning and the arguments of tool calls. Of
	// several choices it stores all contents in the order of arrival.
	Keep bool

	// Echo is the header of the answer whose value Lane.Echoed returns; nil: none.
	Echo *Echo

	// Count counts the tokens of a text; nil: there is no tokenizer. It is called after the end of an answer without usage: the
	// usage is then that of content, reasoning and arguments, with source text. It stores the content as Keep does. A text
	// that was cut is not counted.
	Count func(text []byte) int
}
