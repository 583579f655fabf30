import { unsupportedMember } from '../../http/body-members.ts';

// Members of the API family that Annals does not support (contract 3). docs/compatibility.md lists them.

const keyInstead = 'be left out: write the key itself as apiKey';

export const unsupportedOfAgents = {
  requiredScopes: unsupportedMember(
    'be empty: clients with the scope ai.agentexecution_manage may chat with every agent',
  ),
  tags: unsupportedMember('be empty: group agents by the beginning of their ids or names'),
  icon: unsupportedMember('be empty: agents have no icon'),
  outputFormat: unsupportedMember('be empty: describe the format of answers in userPrompt'),
  agentCollaborations: unsupportedMember('be empty: call the other agent with the answer of the first one'),
  maxRecursionLimit: unsupportedMember('be 20 or left out: the limits of tool calls are the same for all agents', 20),
  enabledMemory: unsupportedMember(
    'be false or left out: a session always has its earlier messages as context; a new session has none',
    false,
  ),
};

export const unsupportedOfTools = {
  allowedOperations: unsupportedMember('be empty: a tool has no operations to choose from'),
};

export const unsupportedOfTriggers = {
  config: unsupportedMember('be empty: an endpoint has no configuration'),
};

export const unsupportedOfLlmConfig = {
  token: unsupportedMember(keyInstead),
  baseProvider: unsupportedMember('be OPENAI or left out: Annals calls self-hosted servers in this format', 'OPENAI'),
};

export const unsupportedOfSelfHosted = {
  authorizationHeaderName: unsupportedMember(
    'be Authorization or left out: Annals sends apiKey in this header',
    'Authorization',
  ),
  authorizationHeaderToken: unsupportedMember(keyInstead),
  oauth: unsupportedMember(keyInstead),
};

export const unsupportedOfChats = {
  attachments: unsupportedMember('be empty: put the text of the attachment into message'),
};
