// Command gguf writes a tiny language model with random weights, so that llama-server becomes a real and fast
// OpenAI-compatible server whose text means nothing:
//
//	go run ./test/real/gguf -words internal/token/main.txt -context 4096 tiny.gguf
//
// Its tokens are the words of the list, each with one leading space, as in the models that replayd is made for. A
// prompt of N words is N tokens, and an answer is words and beginnings of words. Its chat template trims the content as
// Llama 3's and Gemma's do, and its tokenizer puts a space before a text as Mistral's does. So a text or a message that
// begins with a space, or with a word that needs one, has a wrong count there too.
//
// No token that ends an answer is ever sampled. The same arguments give the same bytes.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gguf:", err)
		os.Exit(1)
	}
}

func run() error {
	words := flag.String("words", "", "`file` of the words, one a line, a to z")
	context := flag.Int("context", 4096, "longest prompt and answer together, in `tokens`")
	flag.Parse()
	if flag.NArg() != 1 {
		return errors.New("want one argument, the file to write")
	}
	if *context < 64 || *context > 1<<20 {
		return fmt.Errorf("-context: want 64 to %d, got %d", 1<<20, *context)
	}
	list, err := os.ReadFile(*words)
	if err != nil {
		return fmt.Errorf("-words: %w", err)
	}
	v, err := newVocabulary(strings.Fields(string(list)))
	if err != nil {
		return fmt.Errorf("%s: %w", *words, err)
	}
	return write(flag.Arg(0), v, *context)
}

func write(path string, v vocabulary, context int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriterSize(f, 1<<20)
	if err := encode(out, describe(v, context), weights(v)); err != nil {
		return err
	}
	return out.Flush()
}
