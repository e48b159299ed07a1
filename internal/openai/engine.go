package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"replayd/internal/openai/internal/chunk"
)

// A Model is one entry of GET /v1/models.
type Model struct {
	ID      string
	OwnedBy string // names the engine, if the engine reports it
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

// engines by the owned_by of their model lists. Any other takes ignore_eos, as most do: llama.cpp, LMDeploy,
// Dynamo, whose min_tokens are missing, spelled differently or not confirmed. What each takes stands in its own
// source: vLLM and SGLang entrypoints/openai/protocol.py, TensorRT-LLM serve/openai_protocol.py.
var engines = map[string]engine{
	"vllm":            {min: true},
	"sglang":          {min: true},
	"tensorrt_llm":    {min: true},
	"openai":          {strict: true, maxCompletion: true},
	"openai-internal": {strict: true, maxCompletion: true},
	"system":          {strict: true, maxCompletion: true}, // what OpenAI calls the owner of its newer models
}

func engineOf(m Model) engine {
	if m.OwnedBy != "" && m.OwnedBy == m.ID {
		return engine{strict: true} // TGI gives the model's own name (router/src/server.rs)
	}
	return engines[strings.ToLower(m.OwnedBy)]
}

// modelsBytes bounds the answer to GET /v1/models; public catalogues of 400 models have 600 KB.
const modelsBytes = 4 << 20

// ErrNotSent is in the error of a probe request that was not sent for a reason on this side.
var ErrNotSent = errors.New("not sent")

// Models requests the target's list of models. The connection is bounded by Timeouts.Connect, the answer by ctx
// and Timeouts.FirstToken and Total. Without an HTTP answer its error is ErrNoAnswer; where credentials cannot be read it is
// ErrNotSent.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	message := c.appendHeader(nil, "GET", "/v1/models", "application/json", "", -1, RequestFields{})
	body, err := c.fetch(ctx, message, modelsBytes)
	if err != nil {
		return nil, fmt.Errorf("GET %s/v1/models: %w", c.base, err)
	}
	listed, ok := chunk.Models(body)
	if !ok {
		return nil, fmt.Errorf("GET %s/v1/models: want a JSON list of models, got %s", c.base, c.notJSON(body))
	}
	models := make([]Model, 0, len(listed))
	for _, m := range listed {
		models = append(models, Model(m))
	}
	return models, nil
}

// ErrSeveralModels means that the server lists several models and the configuration names none.
var ErrSeveralModels = errors.New("model: the server lists several, name one")

// Choose sets the model that later messages name: the configured model, listed or not, else the only listed one. The owner of
// the model determines the engine. Choose may be called again while lanes run.
func (c *Client) Choose(models []Model) (Model, error) {
	var m Model
	switch {
	case c.target.Model != "":
		m.ID = c.target.Model
		for _, listed := range models {
			if m.OwnedBy == "" || listed.ID == m.ID {
				m.OwnedBy = ownerFor(m.ID, listed)
			}
		}
	case len(models) == 1 && models[0].ID == "":
		return m, errors.New("model: the server lists one without a name: name one")
	case len(models) == 1:
		m = models[0]
		if len(m.ID) > chunk.MaxName || c.redact(m.ID) != m.ID {
			return Model{}, fmt.Errorf("model: want a name of at most %d bytes from the server, without our credentials, got one of %d bytes", chunk.MaxName, len(m.ID))
		}
	case len(models) == 0:
		return m, errors.New("model: the server lists none: name one")
	default:
		ids := make([]string, 0, 10)
		for _, listed := range models[:min(len(models), cap(ids))] {
			ids = append(ids, listed.ID)
		}
		return m, fmt.Errorf("%w of %d: %s", ErrSeveralModels, len(models), c.words(strings.Join(ids, ", ")))
	}
	c.served.Store(&served{model: m.ID, engine: engineOf(m)})
	return m, nil
}

// ownerFor returns the owner of a model, which may be an alias of the listed one. An owner that repeats the listed name
// becomes the alias then.
func ownerFor(id string, listed Model) string {
	if listed.OwnedBy == listed.ID {
		return id
	}
	return listed.OwnedBy
}

// Overhead measures the tokens that the server adds to a prompt: it sends one word that is one token in every tokenizer,
// unstreamed and with an output of one token, and subtracts one from the reported prompt tokens.
func (c *Client) Overhead(ctx context.Context) (overhead int, err error) {
	message, err := c.appendRequest(nil, Body{Prompt: []byte("about"), MaxTokens: 1, RequestID: "replayd/probe"}, OutputMax)
	if err != nil {
		return 0, err
	}
	body, err := c.fetch(ctx, message, modelsBytes)
	if err != nil {
		return 0, fmt.Errorf("probe %s: %w", c.base, err)
	}
	var answer struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("probe %s: want a JSON answer: %s", c.base, c.words(err.Error()))
	}
	if n := answer.Usage.Prompt; n < 1 || n > chunk.MaxTokens {
		return 0, fmt.Errorf("probe %s: usage.prompt_tokens: want an integer ≥ 1, got %d", c.base, n)
	}
	return answer.Usage.Prompt - 1, nil
}
