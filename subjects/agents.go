package subjects

import "regexp"

// What the Synadia Agent Protocol for NATS names, for the face of the features
// as agents: version AgentProtocol, agents of the kind AgentKind.
const (
	AgentProtocol = "0.3"
	AgentService  = "agents" // name of the micro service of every agent
	AgentQueue    = "agents" // queue group in which the instances of one agent share its prompts
	AgentKind     = "llmbus"
)

const agentPrefix = "agents."

// AgentPrompt is the subject that a feature takes prompts on, as an agent.
func AgentPrompt(owner, feature string) string { return agent("prompt", owner, feature) }

// AgentStatus is the subject on which such an agent answers with its state.
func AgentStatus(owner, feature string) string { return agent("status", owner, feature) }

// AgentHeartbeat is the subject on which it says that it lives.
func AgentHeartbeat(owner, feature string) string { return agent("hb", owner, feature) }

func agent(verb, owner, feature string) string {
	return agentPrefix + verb + "." + AgentKind + "." + owner + "." + feature
}

var agentOwner = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// AgentOwnerRule says in words what ValidAgentOwner accepts.
const AgentOwnerRule = "1 to 64 of a-z, 0-9, _ and -"

// ValidAgentOwner reports whether a name can be the owner of agents; see
// AgentOwnerRule. Every feature's name can be the name of an agent.
func ValidAgentOwner(name string) bool { return agentOwner.MatchString(name) }
