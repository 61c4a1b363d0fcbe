package replay

import "fmt"

// StatusError is an answer of the server that is none of the expected ones.
type StatusError struct{ Status, Description string }

// Error says what the server said.
func (e *StatusError) Error() string {
	return fmt.Sprintf("replay: the server answered %s %s", e.Status, e.Description)
}
