import { Type } from 'typebox';
import { unsupportedMember } from '../http/body-members.ts';

// Members that the API family publishes and Annals does not do (contract 3). docs/compatibility.md lists them.

const keyInstead = 'be left out: give the key itself as apiKey';

export const unsupportedOfAgents = {
  mcpServers: Type.Optional(
    unsupportedMember('be empty: an agent has the tool change-history alone, given in nativeTools'),
  ),
  requiredScopes: Type.Optional(
    unsupportedMember('be empty: whoever has the scope ai.agentexecution_manage may chat with every agent'),
  ),
  tags: Type.Optional(unsupportedMember('be empty: group agents by the beginning of their ids or names')),
  icon: Type.Optional(unsupportedMember('be empty: agents have no picture')),
  outputFormat: Type.Optional(unsupportedMember('be empty: say in userPrompt what an answer looks like')),
  agentCollaborations: Type.Optional(
    unsupportedMember('be empty: an agent hands nothing over; call the other agent with the answer of the first'),
  ),
  maxRecursionLimit: Type.Optional(
    unsupportedMember('be 20 or left out: the limits of tool calls are the same for all agents', 20),
  ),
  enabledMemory: Type.Optional(
    unsupportedMember(
      'be false or left out: the earlier messages of a session are always its context; a chat without them is a new session',
      false,
    ),
  ),
};

export const unsupportedOfTools = {
  allowedOperations: Type.Optional(unsupportedMember('be empty: a tool has no operations to choose from')),
};

export const unsupportedOfTriggers = {
  config: Type.Optional(unsupportedMember('be empty: an endpoint has nothing to configure')),
};

export const unsupportedOfLlmConfig = {
  token: Type.Optional(unsupportedMember(keyInstead)),
  baseProvider: Type.Optional(
    unsupportedMember('be OPENAI or left out: self-hosted servers are called in that format', 'OPENAI'),
  ),
};

export const unsupportedOfSelfHosted = {
  authorizationHeaderName: Type.Optional(
    unsupportedMember('be Authorization or left out: apiKey is sent in that header', 'Authorization'),
  ),
  authorizationHeaderToken: Type.Optional(unsupportedMember(keyInstead)),
  oauth: Type.Optional(unsupportedMember(keyInstead)),
};

export const unsupportedOfChats = {
  attachments: Type.Optional(unsupportedMember('be empty: put what the model is to read into message')),
};
