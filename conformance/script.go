package conformance

import (
	"encoding/json"
	"time"
)

const scriptsFile = "scripts"

// script is how a worker behaves towards one task, and what the client may make
// of it.
type script struct {
	Name        string   `json:"name"`
	Do          Do       `json:"do"`
	CancelAfter int      `json:"cancel_after"`
	Nobody      bool     `json:"nobody"` // no worker listens
	Plays       [][]step `json:"plays"`  // of the first request, the second and so on; the last again for those that follow
	Cancels     bool     `json:"cancels"`
	Expect      []Report `json:"expect"` // one of them
}

// step is one thing that the played worker does. $id in a message is the
// request's id.
type step struct {
	Frame  json.RawMessage `json:"frame"` // to llm.stream.<id>, or for stream_reply to the reply subject
	Reply  json.RawMessage `json:"reply"` // to the reply subject, with its headers
	Raw    *string         `json:"raw"`   // any text to the reply subject
	Empty  bool            `json:"empty"` // the empty message to the reply subject
	WaitMS int64           `json:"wait_ms"`
	Cancel bool            `json:"cancel"` // wait until the request is cancelled
}

func (s step) wait() time.Duration { return time.Duration(s.WaitMS) * time.Millisecond }
