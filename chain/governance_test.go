package chain_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmbus/llmbus/chain"
	"github.com/llmbus/llmbus/llm"
	"github.com/llmbus/llmbus/provider/fake"
)

var classes = []string{"public", "internal", "confidential", "restricted"}

// approve lets each target of a feature see some classes.
func approve(f *chain.Feature, by ...[]string) {
	f.DataClasses = classes
	for i, list := range by {
		f.Targets[i].Can.ApprovedFor = list
	}
}

func TestDataClassOfARequest(t *testing.T) {
	for _, c := range []struct {
		name, asked, feature, least string
		want                        string // the class that the provider's call obeys; empty: no call
		code                        llm.Code
		says                        string
	}{
		{"its own", "public", "internal", "", "public", "", ""},
		{"the feature's", "", "internal", "", "internal", "", ""},
		{"the feature's least", "", "", "confidential", "confidential", "", ""},
		{"never anything", "", "", "", "restricted", "", ""},
		{"raised", "public", "internal", "internal", "internal", "", "data_class public was raised to internal, the least that the feature f takes"},
		{"higher than the least", "restricted", "internal", "internal", "restricted", "", ""},
		{"unknown", "secret", "internal", "", "", llm.CodeInvalidRequest, "data_class: must be one of public, internal, confidential, restricted"},
		{"unknown to a feature with a least", "secret", "", "internal", "", llm.CodeInvalidRequest, "must be one of"},
	} {
		for way, do := range both {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				rig := newRig(t, func(f *chain.Feature) {
					approve(f, classes)
					f.DataClass, f.MinDataClass = c.feature, c.least
				}, fake.New())
				req := ask()
				req.DataClass = c.asked
				got := do(t.Context(), rig, req)
				require.Equal(t, c.asked, req.DataClass, "the caller's request is its own")
				if c.code != "" {
					require.Equal(t, c.code, got.err.Code)
					require.Contains(t, got.err.Message, c.says)
					require.Zero(t, rig.counts()["a"])
					return
				}
				require.Nil(t, got.err)
				require.Equal(t, c.want, rig.fakes["a"].Calls()[0].Request.DataClass)
				require.Equal(t, c.says, slices.Concat(got.resp.Warnings, []string{""})[0])
			})
		}
	}
}

func TestNoTargetMaySeeTheData(t *testing.T) {
	rig := newRig(t, func(f *chain.Feature) { approve(f, []string{"public"}, nil) }, fake.New(), fake.New())
	req := ask()
	req.DataClass = "internal"
	for _, do := range both {
		got := do(t.Context(), rig, req)
		require.Equal(t, llm.CodePolicyDenied, got.err.Code)
		require.Contains(t, got.err.Message, `"internal"`)
	}
	require.Equal(t, map[string]int{"a": 0, "b": 0}, rig.counts())
}

func TestRegionsAreAHardFilter(t *testing.T) {
	rig := newRig(t, func(f *chain.Feature) {
		f.Regions = []string{"eu", "ch"}
		f.Targets[0].Can.Regions = []string{"eu", "us"}
		f.Targets[2].Can.Regions = []string{"eu"}
	}, fake.New(), fake.New(), fake.New(fake.FailsWith(llm.OutcomeConnect)))
	for _, do := range both {
		require.Equal(t, llm.CodeUnavailable, do(t.Context(), rig, ask()).err.Code)
	}
	require.Equal(t, map[string]int{"a": 0, "b": 0, "c": 2}, rig.counts(), "in part elsewhere, or nowhere known, is not there")
}
