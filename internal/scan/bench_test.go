package scan

import (
	"strings"
	"testing"
)

// BenchmarkCheck is for prompts of 64 KB, plain and with escapes, and many short ones.
func BenchmarkCheck(b *testing.B) {
	prose := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 1500)
	for name, data := range map[string]string{
		"text":  `{"content":"` + prose + `"}`,
		"lines": `{"content":"` + strings.ReplaceAll(prose, ". ", `.\n`) + `"}`,
		"code":  `{"content":"` + strings.ReplaceAll(prose, " ", `\"`) + `"}`,
		"short": `[` + strings.Repeat(`{"role":"user","content":"Hello, who are you?"},`, 1000) + `{}]`,
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte(data)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := Check(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUnquote is for a prompt of 64 KB with a line end in each sentence.
func BenchmarkUnquote(b *testing.B) {
	raw := []byte(`"` + strings.Repeat(`The quick brown fox jumps over the lazy dog.\n`, 1500) + `"`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		Share(raw)
	}
}
