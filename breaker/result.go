package breaker

// Kind is what a call says of the provider's health.
type Kind uint8

const (
	Neutral Kind = iota // nothing: the caller went away, the request was at fault, a rate limit
	Success             // it answered, to the end of the stream
	Failure             // it is broken
)

// Result is how an admitted call ended.
type Result struct {
	Kind Kind
	Why  string // class of the failure, such as "timeout": it is shared, so never a provider's own words
}
