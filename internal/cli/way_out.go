package cli

import "regexp"

// A remedy is a flag that gets around a server's refusal of a request.
type remedy struct {
	field bool // the server must also say that it refuses a field: "max_tokens is too large" is about its value
	says  *regexp.Regexp
	flag  string
}

// remedies are in the order in which they are tried: the first one that holds is named.
var remedies = []remedy{
	{
		false, saying(`context (length|size|window)|max(imum)? (model|sequence|context|input) len(gth)?|max_model_len`),
		"--max-context",
	},
	{true, saying(`continuous_usage_stats`), "--per-chunk-usage=false"},
	{true, saying(`stream_options|include_usage`), "--omit-stream-options"},
	{true, saying(`ignore_eos|min_tokens`), "--output max, which sends only a limit"},
	{true, saying(`max_tokens\b.*\bmax_completion_tokens`), "--server openai, which sends max_completion_tokens"},
	{
		true, saying(`max_completion_tokens`),
		"--server with the name of the engine, or --output free, which sends no limit",
	},
	{true, saying(`max_tokens`), "--output free, which sends no limit"},
	{true, saying(`stream|streaming`), "--stream=false"},
	{false, saying(`chat.?template`), "--api completions"},
	{false, saying(`prompt\W.*(missing|required)|(missing|required)\W.*prompt`), "--api completions"},
	{false, saying(`messages\W.*(missing|required)|(missing|required)\W.*messages`), "--api chat"},
	{
		false, saying(`model\W.*(not exist|not found|unknown)|unknown model|model_not_found|(missing|required)\W.*model`),
		"--model",
	},
	{false, regexp.MustCompile(`(?is)^HTTP 404:.*\bmodel\b`), "--model"},
	{false, regexp.MustCompile(`^HTTP 40[45]:`), "--url with the whole address of the endpoint, or --endpoint-path"},
	{false, regexp.MustCompile(`^HTTP 40[13]:`), "--http.config.file with a key"},
}

// refusal matches the words of servers against a field that they do not take.
var refusal = saying(`unexpected|unknown|unrecogni[sz]ed|unsupported|forbidden|extra_forbidden|no such|` +
	`(not|\w+n't) (\w+ )?(support|permit|allow|recogni[sz]|expect|accept)\w*|` +
	`(extra|invalid|additional) (field|input|param|argument|propert)\w*`)

// saying matches a pattern between other words.
func saying(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?is)\b(` + pattern + `)\b`) }

// WayOut names the flag that gets around the failure of a request, by what the server says; "": none is known. The body of
// a row may name a model.
func WayOut(said, model string) string {
	refused := refusal.MatchString(said)
	for _, r := range remedies {
		if (refused || !r.field) && r.says.MatchString(said) {
			if r.flag == "--model" && model != "" {
				return "bodies that name a model of the server, or none"
			}
			return r.flag
		}
	}
	return ""
}
