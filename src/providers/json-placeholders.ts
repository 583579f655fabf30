import { randomUUID } from 'node:crypto';
import { elementsOf, entriesOf, kindOf } from '../core/json/members.ts';
import { parseIfJson } from '../core/json/parse.ts';
import type { JsonNode } from '../core/json/tape.ts';
import { compactText, sourceText } from '../core/json/text.ts';
import { parsed } from './members.ts';

/**
 * Vendors' packages parse and rewrite the inputs of tool calls, which alters numbers: 9007199254740993 becomes
 * 9007199254740992, 1.10 becomes 1.1. So they get a placeholder object that contains the text, which is put back
 * afterwards. The key is random per process.
 */
const key = `annals-${randomUUID()}`;
const inJson = new RegExp(`\\{"${key}":"([^"]*)"\\}`, 'g');
/** The placeholder as a package writes it into a string. */
const inString = new RegExp(`"\\{\\\\"${key}\\\\":\\\\"([^"\\\\]*)\\\\"\\}"`, 'g');

/** Levels of an answer whose tool inputs are kept as text. A deeper answer is parsed normally. */
const maxDepth = 200;

/** The placeholder of a text. */
export function placeholder(text: string): Record<string, unknown> {
  return { [key]: Buffer.from(text).toString('base64') };
}

/** Replaces the placeholders in a JSON text with their texts. */
export function withOriginals(json: string): string {
  if (!json.includes(key)) return json;
  return json
    .replaceAll(inString, (_, text: string) => JSON.stringify(textOf(text)))
    .replaceAll(inJson, (_, text: string) => textOf(text));
}

/**
 * The value of an answer or a stream event; undefined for malformed JSON. Objects in members named `inputMember` are
 * tool inputs and become placeholders.
 */
export function parsedAnswer(text: string, inputMember: string | undefined): unknown {
  if (inputMember === undefined || !new RegExp(`"${inputMember}"\\s*:\\s*\\{\\s*"`).test(text)) return parsed(text);
  const node = parseIfJson(text, maxDepth);
  return node === undefined ? parsed(text) : jsonValue(node, inputMember);
}

function jsonValue(node: JsonNode, inputMember: string): unknown {
  switch (kindOf(node)) {
    case 'object':
      return Object.fromEntries(
        entriesOf(node).map(([name, member]) => [
          name,
          name === inputMember && isFilledObject(member)
            ? placeholder(inputText(member))
            : jsonValue(member, inputMember),
        ]),
      );
    case 'array':
      return elementsOf(node).map((element) => jsonValue(element, inputMember));
    default:
      return JSON.parse(sourceText(node));
  }
}

/** Compact, but with members that are given twice as they are. */
function inputText(node: JsonNode): string {
  return node.tape.repeatedKey === -1 ? compactText(node) : sourceText(node);
}

/** Anthropic's streams start a tool call with an empty input, which the pieces replace. */
function isFilledObject(node: JsonNode): boolean {
  return kindOf(node) === 'object' && entriesOf(node).length > 0;
}

function textOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
