// Package openai speaks to OpenAI and to the many servers that speak its
// language: Chat Completions by default, the Responses API by choice, and Azure,
// vLLM, llama.cpp, Groq, Mistral, OpenRouter and others through settings.
//
// Differences between servers are read leniently wherever both readings cannot
// be meant at once; only what must be sent differently is a setting.
package openai
