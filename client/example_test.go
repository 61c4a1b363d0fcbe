package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/llmbus/llmbus/client"
	"github.com/llmbus/llmbus/llm"
)

func ExampleClient_Complete() {
	nc, err := nats.Connect(nats.DefaultURL)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := c.Complete(ctx, &llm.Request{
		Feature:  "support",
		Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("Where is my order?")}},
	})
	switch {
	case errors.Is(err, llm.ErrSwitchedOff):
		fmt.Println("an operator has switched this off")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(resp.Content)
	}
}

func ExampleClient_Stream() {
	nc, err := nats.Connect(nats.DefaultURL)
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	c, err := client.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	attempt := 0
	for f, err := range c.Stream(context.Background(), &llm.Request{
		Feature:  "support",
		Messages: []llm.Message{{Role: llm.RoleUser, Content: llm.Text("Where is my order?")}},
	}) {
		if err != nil {
			log.Fatal(err)
		}
		if f.Attempt > attempt && attempt > 0 {
			fmt.Println("\n(starting over)")
		}
		attempt = f.Attempt
		fmt.Print(f.Text)
	}
}
