package provider

// Capabilities says what a model behind a target can do. Unknown means no: a
// target is asked only for what it declares.
type Capabilities struct {
	Tools           bool     // takes tools and answers with tool calls
	ToolChoice      bool     // obeys tool_choice other than auto and none
	Vision          bool     // takes image parts
	ImageURLs       bool     // takes images by https URL, not only as data
	JSONSchema      bool     // constrains its output to a JSON schema
	Streaming       bool     // answers in pieces
	Seed            bool     // takes a seed
	ContextWindow   int      // tokens of prompt and answer together; 0 is unknown
	MaxOutputTokens int      // tokens of the answer; 0 is unknown
	Regions         []string // where the data is processed
	ApprovedFor     []string // data classes that may be sent there
}
