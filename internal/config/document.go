package config

import (
	"errors"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxBytes bounds one file or one value of the bucket.
const maxBytes = 1 << 20

// document is one source of settings and what is wrong with it so far.
type document struct {
	source   string
	problems []Problem
}

// parse returns the mapping at the top of a YAML text. nil means that it could
// not be read at all, which the document then knows.
func (d *document) parse(data []byte, path, part string) *section {
	if len(data) > maxBytes {
		d.add(Problem{Key: path, part: part, Reason: "larger than 1 MiB"})
		return nil
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		d.add(syntax(err, path, part))
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			d.add(at(doc.Body, Problem{Key: path, part: part, Reason: "a second document begins here; keep to one"}))
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		return &section{doc: d, path: path, part: part}
	}
	return d.mapping(body, path, part)
}

// mapping reads a node that must be a mapping.
func (d *document) mapping(n ast.Node, path, part string) *section {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.add(at(n, Problem{Key: path, part: part, Reason: "must be a mapping of keys to values" + special(n)}))
		return nil
	}
	s := &section{doc: d, path: path, part: part, node: m, body: m, entries: make(map[string]*ast.MappingValueNode, len(m.Values))}
	if len(m.Values) > 0 { // the token of a block mapping is its first colon
		s.node = m.Values[0].Key
	}
	for _, v := range m.Values {
		key := v.Key.GetToken().Value
		s.entries[key] = v
		s.order = append(s.order, key)
	}
	return s
}

func (d *document) add(p Problem) {
	p.Source = d.source
	d.problems = append(d.problems, p)
}

// at gives a problem the place of a node.
func at(n ast.Node, p Problem) Problem {
	if n != nil && n.GetToken() != nil {
		p.Line, p.Column = n.GetToken().Position.Line, n.GetToken().Position.Column
	}
	return p
}

// syntax takes the place and the message out of the parser's error and leaves
// its excerpt of the source, which could show a secret.
func syntax(err error, path, part string) Problem {
	p := Problem{Key: path, part: part, Reason: "not valid YAML"}
	if e, ok := errors.AsType[yaml.Error](err); ok {
		p.Reason += ": " + e.GetMessage()
		p.Line, p.Column = e.GetToken().Position.Line, e.GetToken().Position.Column
	}
	return p
}

// special names what this reader does not take although YAML has it.
func special(n ast.Node) string {
	switch n.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return "; anchors and aliases are not taken, write the value out"
	case *ast.TagNode:
		return "; tags are not taken, remove it"
	}
	return ""
}
