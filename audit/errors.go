package audit

import "errors"

// ErrNothing means that no worker has recorded anything: data_rules with audit
// have not been in force, or the stream was deleted.
var ErrNothing = errors.New("there is no audit stream; records begin with data_rules in the configuration and the first request")
