import { JsonSplice } from '../../core/json/splice.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import type { InputBound } from '../../providers/call-ledger.ts';
import { checkNames, type NameRules, shown } from '../formats/document.ts';
import { Members, refused } from '../formats/members.ts';
import { checkTextBytes, type PassedRequest, perCall } from '../formats/passed-request.ts';
import { openaiLimits } from './limits.ts';
import { hasOtherPrice, nameRules, refuseMembers } from './passed-request.ts';

const known = ['model', 'input', 'encoding_format', 'dimensions', 'user'];
const rules: NameRules = { ...nameRules, judged: new Set([...nameRules.judged, ...known]) };

/** Reads a request for embeddings, with the tenant's own key. Throws validation_violation naming the member. */
export function readPassedEmbeddings(
  document: JsonNode,
  value: unknown,
  { provider, model }: { readonly provider: 'openai' | 'self_hosted'; readonly model: string },
): PassedRequest {
  const members = new Members(value, '');
  checkNames(value, rules);
  refuseMembers(members, provider);
  // Some servers embed a conversation, with what its parts have them fetch.
  if (members.get('messages') !== undefined) throw refused('messages', 'is not supported: use input');
  if (members.flag('stream') === true) throw refused('stream', 'must be false: embeddings are not streamed');
  const splice = new JsonSplice(document).set(document, 'model', JSON.stringify(model));
  checkTextBytes(splice.length);
  const inputBound: InputBound = { tokens: idsIn(members) ?? splice.length + perCall, images: 0, isExact: true };
  return {
    stream: false,
    user: members.name('user', openaiLimits.userCharacters),
    // An embedding has no output tokens.
    maxTokens: 0,
    answers: 1,
    leftOut: [],
    unknown: Object.entries(members.plain()).flatMap(([name, member]) =>
      known.includes(name) || member === null ? [] : [shown(name)],
    ),
    inputBound,
    isUnpriced: provider === 'openai' && hasOtherPrice(members),
    hidesUsage: false,
    bytes: () => splice.bytes(),
  };
}

/** The number of tokens of an input that is token ids; undefined for texts. Throws for any other input. */
function idsIn(members: Members): number | undefined {
  const input = members.get('input');
  if (input === undefined) throw refused('input', 'is required');
  if (typeof input === 'string') return undefined;
  if (!Array.isArray(input) || input.length === 0) throw refused('input', must);
  if (input.every(isTokenId)) return input.length;
  if (input.length > openaiLimits.inputs) throw refused('input', `must have at most ${openaiLimits.inputs} inputs`);
  if (input.every((text) => typeof text === 'string')) return undefined;
  if (!input.every((ids) => Array.isArray(ids) && ids.length > 0 && ids.every(isTokenId))) throw refused('input', must);
  return input.reduce<number>((sum, ids: readonly unknown[]) => sum + ids.length, 0);
}

const must = 'must be a string, a list of strings, a list of token ids, or a list of such lists';

function isTokenId(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0;
}
