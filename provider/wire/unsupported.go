package wire

import (
	"errors"
	"strings"

	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider"
)

// Unsupported is the failure of a request that this provider's API cannot
// express. what names the part in our words, as in "a seed".
func Unsupported(what string) *provider.Failure {
	f := provider.Fail(llm.OutcomeInvalidRequest, errors.New(what+" cannot be sent to this provider"))
	f.Detail = provider.DetailUnsupported
	return f
}

// IsDataURL reports whether a URL holds what it names.
func IsDataURL(url string) bool { return len(url) >= 5 && strings.EqualFold(url[:5], "data:") }
