//go:build tokenizers

package tokenizers

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// passages are ordinary text in several scripts, written for this test.
var passages = []string{
	"The server didn't answer within 2.5 s, so we'll retry (at most 3 times) and they've logged it as ERR_TIMEOUT.",
	"I'M SURE YOU'LL SEE WHAT IT'S ABOUT; don't, won't, shan't — “quoted”, ‘single’ … and so on.",
	"Größere Städte wie Köln, Zürich und Łódź haben U-Bahnen; naïve façades, Ångström, İstanbul.",
	"Le cœur a ses raisons que la raison ne connaît point : 1 234,56 € à l'œil nu.",
	"Сервер отвечает медленнее, чем вчера: 12 345 запросов, из них 7 % с ошибкой. Ёлка, подъезд.",
	"Το σύστημα μετρά τον χρόνο μέχρι το πρώτο σύμβολο, και τον μέσο όρο.",
	"今天的请求比昨天多了三倍，服务器还能承受吗？我们先看看缓存命中率。",
	"東京の天気は晴れです。カタカナとひらがなとｶﾅ、それに漢字が混ざった文章。",
	"안녕하세요, 오늘은 서버의 응답 시간을 측정해 보겠습니다.",
	"الخادم لا يستجيب الآن، ولدينا ١٢٣٤ طلبًا في الانتظار. مَرْحَبًا بالعالم",
	"השרת אינו עונה כרגע, ויש 42 בקשות בתור.",
	"सर्वर अभी उत्तर नहीं दे रहा है, और कतार में १२३ अनुरोध हैं। क्षत्रिय, ज्ञान, हिन्दी",
	"வணக்கம் உலகம், சேவையகம் மெதுவாக உள்ளது. বাংলা ভাষায় একটি বাক্য।",
	"เซิร์ฟเวอร์ตอบช้ามากในวันนี้ ๑๒๓ คำขอ",
	"Tiếng Việt có nhiều dấu: nguyễn, được, người, thường, những.",
	"Cafe\u0301 nai\u0308ve A\u030angstro\u0308m Tie\u0302\u0301ng Vie\u0323\u0302t o\u0328\u0304 \u1100\u1161\u11a8 q\u0307\u0323 \u212b \u2126 \ufb01n",
	"👩‍👩‍👧‍👦 🧑🏽‍💻 🏳️‍🌈 🇩🇪🇯🇵 ❤️‍🔥 ✈️ 1️⃣ 🤷🏻‍♀️ 😀😃😄 👍👍🏿",
	"func main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Printf(\"%d\\n\", i*i)\n\t}\n}\n",
	"def f(x):\r\n    return {k: v for k, v in x.items() if v != None}  # comment\r\n\r\n\r\n",
	"<div class=\"row\"><a href='https://example.org/a/b?c=1&d=2#e'>x</a></div>\n<!-- note -->",
	"SELECT id, name FROM users WHERE age >= 18 AND name LIKE '%x%';\n\n\n--\n",
	"{\"a\": [1, 2.50, -3e10, null, true], \"b\": \"\\u00e9\\n\", \"long_snake_case\": \"camelCaseXMLHttp\"}",
	"| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n* item\n\n```sh\n$ make -j8 && ./a.out > /dev/null 2>&1\n```",
	"0 1 12 123 1234 12345 123456789 3.14159 1,000,000 0xFF 1e-9 192.168.0.1 2026-11-21T10:00:00Z ½ ² Ⅷ ① ٣ ৪",
	"aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQgdGV4dCB3aXRob3V0IHNwYWNlcyBhbmQgbG9uZyBlbm91Z2ggdG8gYmUgbWVyZ2Vk",
	"\u00a0\u2003\u3000 \t\t  \n \n  \n\n   \u200b\u200d\ufeff\u2028\u0085 x",
	"▁already▁there ▁ ▁▁ Ġ Ċ <0x0A> <unk> [INST] [/INST] <<SYS>> #### ____ ---- ==== **** ....",
	"∑∫√∞≈≠≤≥ ←→⇒ αβγ ℝℂ 𝒳𝔸𝟘 𠀀𠮷 𐐀 ꙮ ⠓⠑⠇⠇⠕ ᚠᚢᚦ ☃ ♞ 「」『』【】《》、。",
}

// special has special tokens of some tokenizers, whole and damaged.
var special = []string{
	"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|begin_of_text|>", "<start_of_turn>", "<end_of_turn>", "<s>", "</s>",
	"<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜fim▁hole｜>", "<|start|>", "<|channel|>", "<think>", "</think>", "<tool_call>", "<table>",
	"<|im_end", "im_end|>", "<bos>", "<unused7>",
}

// texts returns n texts: all passages, then pieces of them, mixed, damaged and sprinkled with unusual characters.
func texts(n int) []string {
	random := rand.New(rand.NewPCG(20, 26))
	all := append([]string{""}, passages...)
	all = append(all, special...)
	blocks := []rune{ // the first character of blocks of 256
		0, 0x100, 0x300, 0x400, 0x500, 0x600, 0x900, 0xb00, 0xe00, 0x1100, 0x1e00, 0x2000, 0x2100, 0x2500, 0x3000, 0x4e00, 0x9e00, 0xac00, 0xd600,
		0xfb00, 0xff00, 0x1d400, 0x1f300, 0x1f600, 0x20000,
	}
	for len(all) < n {
		var b strings.Builder
		for range 1 + random.IntN(6) {
			runes := []rune(passages[random.IntN(len(passages))])
			from := random.IntN(len(runes))
			part := string(runes[from : from+1+random.IntN(min(60, len(runes)-from))])
			switch random.IntN(10) {
			case 0:
				part = strings.ToUpper(part)
			case 1:
				part = strings.Repeat(" ", random.IntN(20)) + part + strings.Repeat("\n", random.IntN(5))
			case 2:
				part = special[random.IntN(len(special))] + part
			case 3:
				block := blocks[random.IntN(len(blocks))]
				for range random.IntN(8) {
					part += string(block + random.Int32N(256))
				}
			case 4:
				part = strings.Repeat(part[:min(len(part), 1+random.IntN(12))], 1+random.IntN(30)) // may end in mid-character
			case 5:
				part = strings.ReplaceAll(part, " ", "  ")
			}
			b.WriteString(part)
		}
		text := strings.ToValidUTF8(b.String(), "")
		if utf8.ValidString(text) {
			all = append(all, text)
		}
	}
	return all
}
