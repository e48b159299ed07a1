// Package openai speaks the OpenAI HTTP API on the wire. It is the only package that imports fasthttp.
package openai
