import { Type } from 'typebox';
import { unsupportedMember } from '../../http/body-members.ts';

// Members that the API family publishes and Annals does not do (contract 3). docs/compatibility.md lists them.

const keyInstead = 'be left out: write the key itself as apiKey';

export const unsupportedOfAgents = {
  mcpServers: Type.Optional(unsupportedMember('be empty: the only tool is change-history, in nativeTools')),
  requiredScopes: Type.Optional(
    unsupportedMember('be empty: clients with the scope ai.agentexecution_manage may chat with every agent'),
  ),
  tags: Type.Optional(unsupportedMember('be empty: group agents by the beginning of their ids or names')),
  icon: Type.Optional(unsupportedMember('be empty: agents have no icon')),
  outputFormat: Type.Optional(unsupportedMember('be empty: describe the format of answers in userPrompt')),
  agentCollaborations: Type.Optional(
    unsupportedMember('be empty: call the other agent with the answer of the first one'),
  ),
  maxRecursionLimit: Type.Optional(
    unsupportedMember('be 20 or left out: the limits of tool calls are the same for all agents', 20),
  ),
  enabledMemory: Type.Optional(
    unsupportedMember(
      'be false or left out: a session always has its earlier messages as context; a new session has none',
      false,
    ),
  ),
};

export const unsupportedOfTools = {
  allowedOperations: Type.Optional(unsupportedMember('be empty: a tool has no operations to choose from')),
};

export const unsupportedOfTriggers = {
  config: Type.Optional(unsupportedMember('be empty: an endpoint has no configuration')),
};

export const unsupportedOfLlmConfig = {
  token: Type.Optional(unsupportedMember(keyInstead)),
  baseProvider: Type.Optional(
    unsupportedMember('be OPENAI or left out: Annals calls self-hosted servers in this format', 'OPENAI'),
  ),
};

export const unsupportedOfSelfHosted = {
  authorizationHeaderName: Type.Optional(
    unsupportedMember('be Authorization or left out: Annals sends apiKey in this header', 'Authorization'),
  ),
  authorizationHeaderToken: Type.Optional(unsupportedMember(keyInstead)),
  oauth: Type.Optional(unsupportedMember(keyInstead)),
};

export const unsupportedOfChats = {
  attachments: Type.Optional(unsupportedMember('be empty: put the text of the attachment into message')),
};
