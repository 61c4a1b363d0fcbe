package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest is a hash of what is asked: of all fields that shape the answer, and of
// none that say who asks, how long and how the answer travels. It lets requests
// be compared where no prompt may be kept.
func (r *Request) Digest() string {
	h := sha256.New()
	asked := Request{Messages: r.Messages, Tools: r.Tools, ToolChoice: r.ToolChoice, ParallelToolCalls: r.ParallelToolCalls,
		JSONSchema: r.JSONSchema, MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop, Seed: r.Seed,
		DataClass: r.DataClass}
	_ = json.NewEncoder(h).Encode(&asked) // a hash never fails to write, and every field marshals
	return hex.EncodeToString(h.Sum(nil))
}
