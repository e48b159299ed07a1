package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"replayd/internal/openai/internal/chunk"
	"replayd/internal/secret"
)

// A Model is one entry of GET /v1/models.
type Model struct {
	ID      secret.Text // "" if requests cannot name it
	OwnedBy secret.Text // names the engine, if the engine reports it
}

// listed lets in an entry of a list of models. Requests have to name a model byte for byte, so one that the door changes has no name.
func (c *Client) listed(m chunk.Model) Model {
	hiding := c.Hidden()
	id := hiding.Text(m.ID, chunk.MaxName)
	if string(id) != m.ID {
		id = ""
	}
	return Model{id, hiding.Text(m.OwnedBy, chunk.MaxName)}
}

// served has the model and the engine for which requests are built, as far as they are known.
type served struct {
	model  string
	engine engine
}

// An engine has the fields that an engine accepts beside the length limit.
type engine struct {
	strict        bool // refuses or ignores ignore_eos, so an exact length cannot be requested
	min           bool // accepts min_tokens
	maxCompletion bool // wants max_completion_tokens in chat
}

// engines by the owned_by of their model lists, and by the names that Options.Server takes. Any other takes ignore_eos,
// as most do. In llama.cpp, LMDeploy and Dynamo min_tokens is missing, spelled differently or not confirmed. The fields
// are those in each engine's source: vLLM and SGLang entrypoints/openai/protocol.py, TensorRT-LLM
// serve/openai_protocol.py.
var engines = map[string]engine{
	"vllm":            {min: true},
	"sglang":          {min: true},
	"tensorrt_llm":    {min: true},
	"lmdeploy":        {},
	"dynamo":          {},
	"llama.cpp":       {},
	"tgi":             {strict: true},
	"ollama":          {strict: true}, // it ignores what it does not know (openai/openai.go)
	"transformers":    {strict: true}, // it refuses what it does not know (cli/serve.py)
	"openai":          {strict: true, maxCompletion: true},
	"openai-internal": {strict: true, maxCompletion: true},
	"system":          {strict: true, maxCompletion: true}, // what OpenAI calls the owner of its newer models
}

// Servers returns the engines that Options.Server may name.
func Servers() []string {
	return []string{
		"vllm", "sglang", "tensorrt_llm", "lmdeploy", "dynamo", "llama.cpp", "tgi", "ollama", "transformers", "openai",
	}
}

// engineOf returns the engine that serves a model: the configured one, else the one that its owner names.
func (c *Client) engineOf(m Model) engine {
	if c.target.Server != "" {
		return engines[c.target.Server]
	}
	if m.OwnedBy != "" && m.OwnedBy == m.ID {
		return engine{strict: true} // TGI gives the model's own name (router/src/server.rs)
	}
	return engines[strings.ToLower(string(m.OwnedBy))]
}

// NotExact says why requests do not ask for exact lengths of answers, "" if they do, and whether the target is
// configured to ask for them all the same.
func (c *Client) NotExact() (why string, wanted bool) {
	asked := func(f field) bool { return f.key == "min_tokens" || f.key == "ignore_eos" && string(f.value) == "true" }
	const another = "; --server (key server) names another"
	e, wanted := c.served.Load().engine, c.target.Output == OutputExact
	switch {
	case slices.ContainsFunc(c.extra, asked):
	case c.target.Output == OutputMax:
		why = "output is max (exact would ask for them): an answer may end before its limit"
	case c.target.Output == OutputFree:
		why = "output is free (exact would ask for them): no limit is sent"
	case e.strict && c.target.Server != "":
		why = "server is " + c.target.Server + ", which does not take ignore_eos"
	case e.strict && e.maxCompletion:
		why = "by owned_by in its list of models the server is OpenAI's API, which refuses ignore_eos" + another
	case e.strict:
		why = "by owned_by in its list of models the server is one that does not know ignore_eos, such as TGI" + another
	}
	return why, wanted
}

// modelsBytes bounds the answer to GET /v1/models; public catalogs of 400 models have 600 KB.
const modelsBytes = 4 << 20

// ErrNotSent is in the error of a probe request that was not sent for a reason on this side.
var ErrNotSent = errors.New("not sent")

// Models requests the target's list of models, each once and without adapters. The connection is bounded by
// Timeouts.Connect, the answer by ctx and Timeouts.FirstToken and Total. Without an HTTP answer its error is
// ErrNoAnswer; where credentials cannot be read it is ErrNotSent. A server with other paths than /v1 need have
// no list: without one there are no models, and no error.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	message := c.appendHeader(nil, "GET", c.base.lists(), "application/json", "", -1, RequestFields{})
	body, err := c.fetch(ctx, message, modelsBytes)
	if noSuchPath(err) && c.base.custom() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", c.base.list(), err)
	}
	listed, ok := chunk.Models(body)
	if !ok {
		return nil, fmt.Errorf("GET %s: want a JSON list of models, got %s", c.base.list(), c.notJSON(body))
	}
	models, seen := make([]Model, 0, len(listed)), map[string]bool{}
	for _, m := range bases(listed) {
		if !seen[m.ID] {
			models = append(models, c.listed(m))
		}
		seen[m.ID] = true
	}
	return models, nil
}

// bases returns the models without the adapters of others, such as LoRA adapters at vLLM. If there are only adapters,
// it returns those.
func bases(all []chunk.Model) []chunk.Model {
	isBase := func(m chunk.Model) bool { return m.Parent == "" || m.Parent == m.ID }
	if !slices.ContainsFunc(all, isBase) {
		return all
	}
	return slices.DeleteFunc(all, func(m chunk.Model) bool { return !isBase(m) })
}

// ErrSeveralModels means that the server lists several models and the configuration names none.
var ErrSeveralModels = errors.New("model: the server lists several, name one")

// Choose sets the model that later messages name: the configured model, listed or not, else the only listed one. The owner of
// the model determines the engine. Choose may be called again while lanes run.
func (c *Client) Choose(models []Model) (Model, error) {
	var m Model
	switch {
	case c.target.Model != "":
		m.ID = secret.Set(nil).Text(c.target.Model, chunk.MaxName) // as it is shown
		for _, listed := range models {
			if m.OwnedBy == "" || listed.ID == m.ID {
				m.OwnedBy = ownerFor(m.ID, listed)
			}
		}
	case len(models) == 1 && models[0].ID == "":
		return m, fmt.Errorf("model: the server lists one without a usable name (printable, at most %d bytes, without our credentials): name one", chunk.MaxName)
	case len(models) == 1:
		m = models[0]
	case len(models) == 0 && c.base.deployment() != "":
		m.ID = secret.Set(nil).Text(c.base.deployment(), chunk.MaxName)
	case len(models) == 0 && c.base.custom():
		return m, fmt.Errorf("model: there is no list of models at %s: name one", c.base.list())
	case len(models) == 0:
		return m, errors.New("model: the server lists none: name one")
	default:
		ids := make([]string, 0, 10)
		for _, listed := range models[:min(len(models), cap(ids))] {
			ids = append(ids, string(listed.ID))
		}
		return m, fmt.Errorf("%w of %d: %s", ErrSeveralModels, len(models), c.Redact(strings.Join(ids, ", ")))
	}
	name := cmp.Or(c.target.Model, string(m.ID))
	if now := (served{model: name, engine: c.engineOf(m)}); now != *c.served.Load() {
		c.served.Store(&now)
		c.form.Add(1)
	}
	return m, nil
}

// Form changes whenever Choose changes what messages name. A message that was built with another Form is out of date.
func (c *Client) Form() uint64 { return c.form.Load() }

// ownerFor returns the owner of a model, which may be an alias of the listed one. An owner that repeats the listed name
// becomes the alias then.
func ownerFor(id secret.Text, listed Model) secret.Text {
	if listed.OwnedBy == listed.ID {
		return id
	}
	return listed.OwnedBy
}

// Overhead measures the tokens that the server adds to a prompt: it sends one word that is one token in every
// tokenizer, unstreamed and with an output of one token, and subtracts one from the reported prompt tokens. If requests
// have no limit on the output and the server refuses one, the probe has none.
func (c *Client) Overhead(ctx context.Context) (overhead int, err error) {
	body, err := c.probe(ctx, OutputMax)
	e, ok := errors.AsType[probeError](err)
	refused := ok && (e.status == http.StatusBadRequest || e.status == http.StatusUnprocessableEntity)
	if refused && c.target.Output == OutputFree {
		body, err = c.probe(ctx, OutputFree)
	}
	if err != nil {
		return 0, fmt.Errorf("probe %s: %w", c.base, err)
	}
	var answer struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("probe %s: want a JSON answer: %s", c.base, c.Redact(err.Error()))
	}
	if n := answer.Usage.Prompt; n < 1 || n > chunk.MaxTokens {
		return 0, fmt.Errorf("probe %s: usage.prompt_tokens: want an integer ≥ 1, got %d", c.base, n)
	}
	return answer.Usage.Prompt - 1, nil
}

// probe sends the request of Overhead and returns the body of its answer.
func (c *Client) probe(ctx context.Context, mode OutputMode) ([]byte, error) {
	message, err := c.appendRequest(nil, Body{Prompt: []byte("about"), MaxTokens: 1, RequestID: "replayd/probe"}, mode)
	if err != nil {
		return nil, err
	}
	return c.fetch(ctx, message, modelsBytes)
}
