package config

import (
	"cmp"
	"net/url"
	"regexp"

	"github.com/llmbus/llmbus/chain"
)

// PriceFrom says where the price of a model comes from.
type PriceFrom struct {
	Declared bool   // in this configuration
	Host     string // shipped: whose list it is from
	Taken    string // shipped: the day it was read, YYYY-MM-DD
}

// String is fit for a table.
func (f PriceFrom) String() string {
	switch {
	case f.Declared:
		return "configuration"
	case f.Taken != "":
		return "shipped, as of " + f.Taken
	}
	return "none"
}

// shippedPrice is one line of the price lists that are shipped.
type shippedPrice struct {
	model string
	chain.Price
}

// priceList is what one service asked for its models on one day.
type priceList struct {
	host   string // of the service; a price never holds for the same model elsewhere
	taken  string // the day the prices were read
	source string // where
	prices []shippedPrice
}

// snapshot ends the id of a fixed version of a model, which costs what the model
// costs unless it has a line of its own.
var snapshot = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8})$`)

// Price is what a model costs, and from where that is known. What the
// configuration declares wins, a price of 0 too.
func (p *Provider) Price(id string) (chain.Price, PriceFrom) {
	if m := p.models[id]; m.price != nil {
		return *m.price, PriceFrom{Declared: true}
	}
	return shipped(p.service(), id)
}

// service is where a provider's calls go.
func (p *Provider) service() string {
	switch p.Kind {
	case KindOpenAI:
		return cmp.Or(p.OpenAI.BaseURL, "https://api.openai.com")
	case KindAnthropic:
		return cmp.Or(p.Anthropic.BaseURL, "https://api.anthropic.com")
	case KindGemini:
		return cmp.Or(p.Gemini.BaseURL, "https://generativelanguage.googleapis.com")
	}
	return "" // a machine of one's own, whose calls have no price that we knew
}

// shipped finds the price of a model at a service. Aliases that move from model
// to model, such as those that end in -latest, have none: their price moves too.
func shipped(baseURL, model string) (chain.Price, PriceFrom) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "https" || u.Port() != "" {
		return chain.Price{}, PriceFrom{}
	}
	for _, list := range priceLists {
		if list.host != u.Hostname() {
			continue
		}
		for _, id := range []string{model, snapshot.ReplaceAllString(model, "")} {
			for _, p := range list.prices {
				if p.model == id {
					return p.Price, PriceFrom{Host: list.host, Taken: list.taken}
				}
			}
		}
	}
	return chain.Price{}, PriceFrom{}
}
