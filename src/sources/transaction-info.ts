import { entriesOf, kindOf, memberOf, stringOf } from '../core/json/members.ts';
import { parseObject } from '../core/json/parse.ts';
import type { JsonNode } from '../core/json/tape.ts';
import { compactText } from '../core/json/text.ts';
import type { Who } from '../recording/change.ts';
import { readWho } from '../recording/mapping/who.ts';
import { faultOfContext, faultOfCorrelation } from '../recording/member-faults.ts';

/** What an application says of its changes: `annals.who` or `annals.actor`. */
export interface TransactionInfo {
  readonly who?: Who | undefined;
  readonly correlationId?: string | undefined;
  /** JSON text of an object. */
  readonly context?: string | undefined;
}

/** Bytes. Valid members take less, even if each character is an escape. */
const maxBytes = 64 * 1024;
/** Levels: that of the message, and those of its context. */
const maxDepth = 5;

const members: ReadonlySet<string> = new Set(['actor', 'actorId', 'onBehalfOf', 'correlationId', 'context']);
const personMembers: ReadonlySet<string> = new Set(['name', 'id']);

/** Undefined if it is invalid. Null means absent. */
export function readTransactionInfo(content: Buffer | string): TransactionInfo | undefined {
  if (Buffer.byteLength(content) > maxBytes) return undefined;
  const message = parseObject(content, maxDepth);
  if (message === undefined || hasOthers(message, members)) return undefined;
  const who = readWho(message);
  const person = presentMember(message, 'onBehalfOf');
  if (who === 'invalid' || (person !== undefined && hasOthers(person, personMembers))) return undefined;
  const correlation = presentMember(message, 'correlationId');
  const correlationId = stringOf(correlation);
  if (correlation !== undefined && (correlationId === undefined || faultOfCorrelation(correlationId) !== undefined))
    return undefined;
  const context = presentMember(message, 'context');
  if (context !== undefined && faultOfContext(context) !== undefined) return undefined;
  return { who, correlationId, context: context && compactText(context) };
}

function hasOthers(object: JsonNode, allowed: ReadonlySet<string>): boolean {
  return entriesOf(object).some(([name]) => !allowed.has(name));
}

function presentMember(object: JsonNode, name: string): JsonNode | undefined {
  const member = memberOf(object, name);
  return member === undefined || kindOf(member) === 'null' ? undefined : member;
}
