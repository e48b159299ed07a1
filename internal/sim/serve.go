package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Limits on what a client can hold open.
const (
	bodyLimit  = 30 * time.Second // to send the body
	writeLimit = time.Minute      // to take what was written
	stallLimit = 10 * time.Minute // of a stalled answer
)

// errLeft says that the client is gone.
var errLeft = errors.New("the client left")

type exchange struct {
	engine  *Engine
	api     *api
	w       http.ResponseWriter
	control *http.ResponseController
	entry   LogEntry
	timer   *time.Timer
	draws   *rand.Rand

	arrival time.Time
	request request
	fault   string
	length  int // of the answer, in tokens
	reason  string

	seat   *Seat
	due    time.Time // planned instant of the latest event
	answer *answer
	cached int // prompt tokens
	sent   int // output tokens

	first, last time.Time // when tokens were ready to be written
	writable    time.Time // the connection's write deadline
	buf         []byte    // of the next write; an unstreamed answer's text
	thoughts    []byte    // an unstreamed answer's reasoning
	held        bool      // buf is an unstreamed answer, written after everything else is done
}

func (e *Engine) serve(a *api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{engine: e, api: a, w: w, control: http.NewResponseController(w), arrival: time.Now()}
		id := r.Header.Get("X-Request-Id")
		if id == "" {
			id = "sim-" + strconv.FormatInt(e.number.Add(1), 10)
		}
		x.entry = LogEntry{ID: id, API: a.name, UserAgent: r.UserAgent(), Arrival: x.arrival.UnixNano()}
		x.entry.Outcome = x.run(r)
		e.journal.enter(x)
		if x.held {
			_ = x.flush() // a client that has left needs no error
		}
		if x.entry.Outcome == FaultCut || x.entry.Outcome == FaultStalled {
			panic(http.ErrAbortHandler) // net/http's way to close a connection in mid-answer
		}
		_ = x.control.SetWriteDeadline(time.Time{}) // the connection is kept; a recorder has no deadlines
	}
}

// run handles a request from its body to the last byte of its answer and returns its outcome.
func (x *exchange) run(r *http.Request) (outcome string) {
	err := x.read(r)
	if bad, ok := errors.AsType[*refusal](err); ok {
		x.fail(bad.status, bad.kind, bad.text)
		return Refused
	}
	if err != nil { // a client that is gone gets no answer
		return Gone
	}
	o := x.engine.options
	x.draws = draws(o.Seed, x.entry.ID)
	x.fault = o.Faults.pick(x.draws.Float64())
	switch x.fault {
	case FaultError500:
		x.fail(http.StatusInternalServerError, "InternalServerError", "simulated fault")
		return x.fault
	case FaultError429:
		x.fail(http.StatusTooManyRequests, "RateLimitError", "simulated fault")
		return x.fault
	}
	x.plan()
	seat, err := x.engine.batch.Enter(x.arrival, x.entry.ID, x.request.tokens, x.request.keys, x.length)
	if err != nil {
		x.fail(http.StatusServiceUnavailable, "ServiceUnavailableError", err.Error())
		return QueueFull
	}
	x.seat = seat
	defer func() {
		at := x.due
		switch outcome {
		case OK, FaultGarbled, FaultEmpty:
			x.engine.page.ended(x, x.reason)
		case FaultErrorEvent:
			x.engine.page.finished[reasonError].Inc()
		case FaultAbort:
			x.engine.page.finished[reasonAbort].Inc()
		default:
			at = time.Now()
			x.engine.page.finished[reasonAbort].Inc()
		}
		x.engine.batch.Leave(seat, at)
	}()
	ctx := r.Context()
	if x.request.stream && x.open(ctx) != nil || x.prefill(ctx) != nil {
		return Gone
	}
	outcome, err = x.decode(ctx)
	if err != nil {
		return Gone
	}
	return outcome
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// read reads the body and keeps only what the engine needs, so that a queue of long prompts is small.
func (x *exchange) read(r *http.Request) error {
	b := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(b)
	b.Reset()
	_ = x.control.SetReadDeadline(x.arrival.Add(bodyLimit)) // a recorder has no deadlines
	if _, err := b.ReadFrom(http.MaxBytesReader(x.w, r.Body, maxBody)); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return &refusal{http.StatusRequestEntityTooLarge, "BadRequestError", "body: want at most 16 MiB"}
		}
		return errLeft
	}
	_ = x.control.SetReadDeadline(time.Time{})
	if x.engine.journal != nil {
		sum := sha256.Sum256(b.Bytes())
		x.entry.BodySHA256 = hex.EncodeToString(sum[:6])
	}
	var err error
	x.request, err = parse(b.Bytes(), x.api, x.engine.options, x.engine.seed)
	return err
}

func (x *exchange) plan() {
	x.length, x.reason = x.request.max, reasonLength
	if natural := answerLength(x.draws); !x.request.ignoreEOS && natural < x.request.max {
		x.length, x.reason = max(natural, x.request.min, 1), reasonStop
	}
	if x.fault == FaultEmpty {
		x.length, x.reason = 0, reasonStop
	}
	x.answer = newAnswer(x.api, x.request.stream, x.entry.ID, x.engine.model, x.arrival.Unix(), x.draws)
	x.timer = time.NewTimer(time.Hour) // wait sets it
	x.timer.Stop()
}
