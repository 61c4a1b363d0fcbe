package audit

import (
	"time"

	"github.com/llmbus/llmbus/chain"
)

// Record is how one request was routed, and by whom.
type Record struct {
	ID     string    `json:"id"`     // of the record
	Time   time.Time `json:"time"`   // when the request ended, by the worker's clock
	Worker string    `json:"worker"` // that routed it
	chain.Decision
}
