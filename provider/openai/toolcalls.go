package openai

import (
	"encoding/json"
	"strings"
)

// toolCall is a call in whole, or a piece of one.
type toolCall struct {
	Index    *int     `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

// arguments are JSON as text; some servers send the JSON itself.
type arguments string

// UnmarshalJSON takes both forms; null is nothing.
func (a *arguments) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		*a = arguments(data)
		return nil
	}
	*a = arguments(unquote(data))
	return nil
}

// calls puts tool calls together from pieces. A piece belongs to the call of
// its index, or without one to the call begun last. Servers that give all calls
// one index, or none, are seen by what cannot continue a call: see begins.
type calls struct {
	byIndex map[int]*openCall
	last    *openCall
	open    []*openCall
}

// openCall is a call whose pieces are still coming.
type openCall struct {
	at        int // in the Assembly; -1 until it has begun there, with its name
	id, name  string
	arguments strings.Builder
}

func (c *calls) take(a *answer, piece *toolCall) error {
	call := c.find(piece)
	if call == nil || call.begins(piece) {
		call = &openCall{at: -1}
		c.open = append(c.open, call)
	}
	if c.last = call; piece.Index != nil {
		if c.byIndex == nil {
			c.byIndex = make(map[int]*openCall)
		}
		c.byIndex[*piece.Index] = call
	}
	if call.id == "" { // a later null, "" or repetition changes nothing
		call.id = piece.ID
	}
	if call.name == "" {
		call.name = piece.Function.Name
	}
	return call.append(a, string(piece.Function.Arguments))
}

// find returns the call that the piece would continue, or nil.
func (c *calls) find(piece *toolCall) *openCall {
	if piece.Index != nil {
		return c.byIndex[*piece.Index]
	}
	for _, call := range c.open {
		if piece.ID != "" && piece.ID == call.id {
			return call
		}
	}
	return c.last
}

// begins reports whether the piece must be the start of another call: it has
// another id and a name, or it begins an object where this one's is complete.
func (o *openCall) begins(piece *toolCall) bool {
	if piece.Function.Name == "" {
		return false
	}
	if piece.ID != "" && o.id != "" {
		return piece.ID != o.id
	}
	if o.name != "" && piece.Function.Name != o.name {
		return true
	}
	return strings.HasPrefix(strings.TrimSpace(string(piece.Function.Arguments)), "{") && json.Valid([]byte(o.arguments.String()))
}

// append adds to the arguments, and begins the call once its name is known.
func (o *openCall) append(a *answer, piece string) error {
	o.arguments.WriteString(piece)
	switch {
	case o.at < 0 && o.name == "":
		return nil
	case o.at < 0:
		return o.begin(a)
	case piece == "":
		return nil
	}
	return a.Send(a.Arguments(o.at, piece))
}

func (o *openCall) begin(a *answer) error {
	begun := a.Call(o.id, o.name)
	o.at = begun.Index
	if err := a.Send(begun); err != nil || o.arguments.Len() == 0 {
		return err
	}
	return a.Send(a.Arguments(o.at, o.arguments.String()))
}

// flush begins the calls that never got a name, so that they are seen to be
// wrong instead of vanishing.
func (c *calls) flush(a *answer) error {
	for _, call := range c.open {
		if call.at >= 0 {
			continue
		}
		if err := call.begin(a); err != nil {
			return err
		}
	}
	return nil
}
