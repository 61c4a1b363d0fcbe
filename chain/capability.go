package chain

import (
	"slices"
	"strings"

	"github.com/llmbus/llmbus/llm"
)

// need is one thing that a request asks of a target.
type need struct {
	name string // as the caller knows it
	met  func(*Target, *llm.Request) bool
}

// needs lists what the request asks for beyond plain text.
func needs(req *llm.Request) []need {
	var list []need
	add := func(wanted bool, name string, met func(*Target, *llm.Request) bool) {
		if wanted {
			list = append(list, need{name, met})
		}
	}
	images, links := pictures(req)
	add(req.Stream, "stream", func(t *Target, _ *llm.Request) bool { return t.Can.Streaming })
	add(len(req.Tools) > 0, "tools", func(t *Target, _ *llm.Request) bool { return t.Can.Tools })
	add(forced(req.ToolChoice), "tool_choice", func(t *Target, _ *llm.Request) bool { return t.Can.ToolChoice })
	add(images, "image parts", func(t *Target, _ *llm.Request) bool { return t.Can.Vision })
	add(links, "images by URL", func(t *Target, _ *llm.Request) bool { return t.Can.ImageURLs })
	add(req.JSONSchema != nil, "json_schema", func(t *Target, _ *llm.Request) bool { return t.Can.JSONSchema })
	add(req.Seed != nil, "seed", func(t *Target, _ *llm.Request) bool { return t.Can.Seed })
	add(req.MaxTokens > 0, "max_tokens", func(t *Target, req *llm.Request) bool {
		return t.Can.MaxOutputTokens == 0 || req.MaxTokens <= t.Can.MaxOutputTokens
	})
	return list
}

func forced(c *llm.ToolChoice) bool {
	return c != nil && c.Mode != llm.ToolChoiceAuto && c.Mode != llm.ToolChoiceNone
}

func pictures(req *llm.Request) (images, links bool) {
	for i := range req.Messages {
		for _, p := range req.Messages[i].Content {
			if p.Type != llm.PartImage || p.Image == nil {
				continue
			}
			images = true
			if _, _, data := p.Image.Data(); !data {
				links = true
			}
		}
	}
	return images, links
}

// capable lists the targets that may see the request's data and declare all it
// needs. Without any, the error names what is missing.
func (f *Feature) capable(req *llm.Request, notes *trail) ([]*Target, error) {
	list := make([]*Target, 0, len(f.Targets))
	for i := range f.Targets {
		t := &f.Targets[i]
		if why, detail := f.forbids(t, req.DataClass); why != "" {
			notes.skipped(t, why, detail)
			continue
		}
		list = append(list, t)
	}
	if !f.declared(req.DataClass) {
		return nil, llm.Errorf(llm.CodeInvalidRequest, "data_class: must be one of %s", strings.Join(f.DataClasses, ", "))
	}
	if len(list) == 0 {
		return nil, llm.Errorf(llm.CodePolicyDenied, "no target of feature %q may see data of data_class %q", f.Name, req.DataClass)
	}
	for _, n := range needs(req) {
		list = slices.DeleteFunc(list, func(t *Target) bool {
			if !n.met(t, req) {
				notes.skipped(t, SkipLacks, n.name)
				return true
			}
			return false
		})
		if len(list) == 0 {
			return nil, llm.Errorf(llm.CodeInvalidRequest, "%s: no target of feature %q can serve it together with the rest of the request", n.name, f.Name)
		}
	}
	return list, nil
}
