import { randomUUID } from 'node:crypto';
import { elementsOf, entriesOf, kindOf } from '../core/json/members.ts';
import { parseIfJson } from '../core/json/parse.ts';
import type { JsonNode } from '../core/json/tape.ts';
import { compactText, sourceText } from '../core/json/text.ts';
import { parsed } from './members.ts';

/**
 * The vendors' packages parse the inputs of tool calls and write them again, which alters numbers: 9007199254740993 becomes
 * 9007199254740992, and 1.10 becomes 1.1. So they get an object that stands for the text, and the text takes its place afterwards. No
 * other text has the key, which each process draws.
 */
const key = `annals-${randomUUID()}`;
const inJson = new RegExp(`\\{"${key}":"([^"]*)"\\}`, 'g');
/** Where a package has written the object into a string. */
const inString = new RegExp(`"\\{\\\\"${key}\\\\":\\\\"([^"\\\\]*)\\\\"\\}"`, 'g');

/** Of an answer whose tool inputs are read from their text. A deeper one is parsed as any other. */
const maxDepth = 200;

/** An object that stands for a text. */
export function carried(text: string): Record<string, unknown> {
  return { [key]: Buffer.from(text).toString('base64') };
}

/** Marks a text, which a package passes on among the texts of an answer, as a refusal. */
export function asRefusal(text: string): string {
  return text === '' ? text : key + text;
}

/** The text that was marked as a refusal; undefined where it was not. */
export function refusalIn(text: string): string | undefined {
  return text.startsWith(key) ? text.slice(key.length) : undefined;
}

/** Puts the texts into a JSON text, in place of the objects that stand for them. */
export function withCarried(json: string): string {
  if (!json.includes(key)) return json;
  return json
    .replaceAll(inString, (_, text: string) => JSON.stringify(textOf(text)))
    .replaceAll(inJson, (_, text: string) => textOf(text));
}

/**
 * The value of an answer, or of an event of a stream; undefined where it is no JSON. Objects in members with the name `inputMember` are
 * the inputs of tool calls, and are carried.
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
            ? carried(compactText(member))
            : jsonValue(member, inputMember),
        ]),
      );
    case 'array':
      return elementsOf(node).map((element) => jsonValue(element, inputMember));
    default:
      return JSON.parse(sourceText(node));
  }
}

/** Anthropic's streams begin a tool call with an empty input, which the pieces replace. */
function isFilledObject(node: JsonNode): boolean {
  return kindOf(node) === 'object' && entriesOf(node).length > 0;
}

function textOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}
