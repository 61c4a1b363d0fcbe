package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/llmbus/llmbus/internal/config"
	"github.com/llmbus/llmbus/kv"
)

const exampleConfig = `providers:
  openai:                        # kind: openai, from the name; the key is in OPENAI_API_KEY
    models:
      gpt-5-mini: {context_window: 400000, max_output_tokens: 128000, price: {input: 0.25, output: 2}}
  local:                         # vLLM, llama.cpp, Groq, Mistral, OpenRouter and others speak OpenAI's language
    kind: openai
    family: compatible
    base_url: http://127.0.0.1:8000/v1
features:
  support:
    timeout: 20s
    targets:
      - {provider: openai, model: gpt-5-mini, attempts: 2, timeout: 8s, first_token_timeout: 4s}
      - {provider: local, model: llama3.2}
    fallback: [cached, static]
    static_text: Please try again later.
`

func newConfig(io streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check, push and show the configuration",
		Long: "The configuration names providers and features. It is a YAML file, kept in the llm_features bucket, which workers\n" +
			"follow: what is pushed is in force within a second, without a restart.\n\n" + exampleConfig +
			"\nEvery setting with its default: go doc github.com/llmbus/llmbus/internal/config",
		Example: "  broker config check broker.yaml\n  broker config push broker.yaml\n  broker config show > broker.yaml\n  broker config prices broker.yaml",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("%s needs check, push, show or prices; see %s --help", c.CommandPath(), c.CommandPath())}
		},
	}
	c.AddCommand(newConfigCheck(io), newConfigPush(io), newConfigShow(io), newConfigPrices(io))
	return c
}

func newConfigCheck(io streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "check [file]",
		Short:   "Check a file without NATS; says nothing if it is good",
		Long:    "Check reads a file, the one in LLMBUS_CONFIG by default, - for the standard input, and reports all that is wrong with it.",
		Example: "  broker config check broker.yaml && broker config push broker.yaml\n  broker config check --json broker.yaml | jq -r '.[].key'",
		Args:    arguments(0, 1, "at most one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			_, _, err := readConfig(io.in, args)
			if asJSON {
				return errors.Join(err, listProblems(io.out, err))
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what is wrong as a JSON array, too")
	return c
}

// problem is one setting that is refused, as JSON.
type problem struct {
	Source string `json:"source"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

func listProblems(out io.Writer, err error) error {
	list := []problem{}
	if refused, ok := errors.AsType[*config.Error](err); ok {
		for _, p := range refused.Problems {
			list = append(list, problem{p.Source, p.Line, p.Column, p.Key, p.Reason})
		}
	}
	return printJSON(out, list)
}

func newConfigPush(io streams) *cobra.Command {
	return &cobra.Command{
		Use:     "push [file]",
		Short:   "Put a file in force at every worker; prints the keys that changed",
		Example: "  broker config push broker.yaml",
		Args:    arguments(0, 1, "at most one file"),
		RunE: func(c *cobra.Command, args []string) error {
			_, next, err := readConfig(io.in, args)
			if err != nil {
				return err
			}
			return withBuckets(c.Context(), func(ctx context.Context, b *kv.Buckets) error {
				held, err := config.Load(ctx, b.Features)
				if err != nil {
					return err
				}
				changed, err := config.Push(ctx, b.Features, held, next)
				for _, key := range changed {
					fmt.Fprintln(io.out, key)
				}
				return err
			})
		},
	}
}

func newConfigShow(io streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Print the configuration in the bucket as one file",
		Example: "  broker config show > broker.yaml\n  broker config show --json | jq .features",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return withBuckets(c.Context(), func(ctx context.Context, b *kv.Buckets) error {
				held, err := config.Load(ctx, b.Features)
				if err != nil {
					return err
				}
				if held.Empty() {
					fmt.Fprintln(io.err, "the bucket is empty: each worker uses what its environment offers")
				}
				text := []byte(held.YAML())
				if asJSON {
					if text, err = yaml.YAMLToJSON([]byte(cmp.Or(held.YAML(), "{}"))); err != nil {
						return fmt.Errorf("write the configuration as JSON: %w", err)
					}
				}
				_, err = io.out.Write(text)
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, which is a configuration file as well")
	return c
}

// readConfig reads and checks the file that was named.
func readConfig(in io.Reader, args []string) (*config.Config, config.Parts, error) {
	path, err := configPath(args)
	if err != nil {
		return nil, nil, err
	}
	var data []byte
	switch path {
	case "":
		return nil, nil, usageError{fmt.Errorf("name a file, or set LLMBUS_CONFIG")}
	case "-":
		path = "stdin"
		data, err = io.ReadAll(in)
	default:
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, nil, configError{err}
	}
	return config.Parse(path, data)
}

func configPath(args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	env, err := environment()
	if err != nil {
		return "", err
	}
	return env.Config, nil
}
