import { cosignedAt } from './checkpoint.ts';
import { isSignedBy, type Note, parseVerifierKey, signatureTypes, type Verifier } from './note.ts';

/** Which logs and witnesses are trusted, and how many witnesses are needed: C2SP's tlog-policy. */

export interface Witness {
  /** In the policy alone. */
  readonly name: string;
  readonly verifier: Verifier;
  /** Its submission prefix, without a slash at its end; undefined where the policy has none. */
  readonly url: string | undefined;
}

export interface Policy {
  readonly logs: readonly Verifier[];
  readonly witnesses: readonly Witness[];
  /** Whether the witnesses of these names are enough. */
  readonly isEnough: (names: ReadonlySet<string>) => boolean;
}

/** The witnesses and the groups of a policy at most. */
export const maxOfPolicy = 100;

type Rule = Policy['isEnough'];

/** What the text of a policy says. Throws a RangeError that names the line and what is wrong with it. */
export function parsePolicy(text: string): Policy {
  const logs: Verifier[] = [];
  const witnesses: Witness[] = [];
  const rules = new Map<string, Rule>();
  const grouped = new Set<string>();
  let quorum: Rule | undefined;

  const define = (name: string | undefined, rule: Rule): string => {
    if (name === undefined || name === 'none') throw new RangeError('a name is missing, and "none" is taken');
    if (rules.has(name)) throw new RangeError(`${name} is defined twice`);
    rules.set(name, rule);
    return name;
  };
  const ruleOf = (name: string): Rule => {
    const rule = rules.get(name);
    if (rule === undefined) throw new RangeError(`${name} is not defined on a line before`);
    return rule;
  };
  const readLine = ([keyword, ...items]: string[]): void => {
    if (keyword === 'log') {
      const [key, ...url] = items;
      logs.push(verifierOf(key, signatureTypes.ed25519, logs));
      urlOf(url);
    } else if (keyword === 'witness') {
      const [name, key, ...url] = items;
      const verifier = verifierOf(
        key,
        signatureTypes.cosignature,
        witnesses.map((one) => one.verifier),
      );
      const own = define(name, (names) => names.has(own));
      witnesses.push({ name: own, verifier, url: urlOf(url) });
    } else if (keyword === 'group') {
      const [name, count, ...members] = items;
      const needed = neededOf(count, members.length);
      const parts = members.map((member) => {
        if (grouped.has(member)) throw new RangeError(`${member} is a member twice`);
        grouped.add(member);
        return ruleOf(member);
      });
      define(name, (names) => parts.filter((part) => part(names)).length >= needed);
    } else if (keyword === 'quorum') {
      const [name, ...more] = items;
      if (quorum !== undefined) throw new RangeError('there is a quorum already');
      if (name === undefined || more.length > 0) throw new RangeError('a quorum has one name');
      quorum = name === 'none' ? () => true : ruleOf(name);
    } else {
      throw new RangeError('a line begins with log, witness, group or quorum');
    }
    if (rules.size > maxOfPolicy) throw new RangeError(`more than ${maxOfPolicy} witnesses and groups`);
  };

  for (const [index, line] of text.split('\n').entries()) {
    const items = line.split(/[ \t]+/).filter((item) => item !== '');
    try {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a policy may not have
      if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(line)) throw new RangeError('control characters are not allowed');
      if (items.length > 0 && !items[0]?.startsWith('#')) readLine(items);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new RangeError(`line ${index + 1}: ${error.message}`);
    }
  }
  if (quorum === undefined) throw new RangeError('the quorum line is missing');
  return { logs, witnesses, isEnough: quorum };
}

/**
 * The logs of a file with nothing but lines of logs and comments. Other than in a policy, logs may share a key: one
 * installation signs all of its logs with the same one. Throws a RangeError that names the line.
 */
export function parseLogs(text: string): readonly Verifier[] {
  return text.split('\n').flatMap((line, index) => {
    const [keyword, key, ...url] = line.split(/[ \t]+/).filter((item) => item !== '');
    if (keyword === undefined || keyword.startsWith('#')) return [];
    try {
      if (keyword !== 'log') throw new RangeError('a line begins with log');
      urlOf(url);
      return [verifierOf(key, signatureTypes.ed25519, [])];
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new RangeError(`line ${index + 1}: ${error.message}`);
    }
  });
}

/**
 * The witnesses of a policy that signed a checkpoint, and when, in seconds; `'wrong'`: one signature is not for this
 * text.
 */
export function witnessesOf(note: Note, policy: Policy): Map<string, number> | 'wrong' {
  const seen = new Map<string, number>();
  for (const { name, verifier } of policy.witnesses) {
    const at = cosignedAt(note, verifier);
    if (at === 'wrong') return at;
    if (at !== undefined) seen.set(name, at);
  }
  return seen;
}

/** Whether a log of the policy signed the note; true for a policy without logs, which leaves this to other checks. */
export function isOfLog(note: Note, policy: Policy): boolean {
  return policy.logs.length === 0 || policy.logs.some((log) => isSignedBy(note, log) === true);
}

function verifierOf(key: string | undefined, type: Verifier['type'], known: readonly Verifier[]): Verifier {
  if (key === undefined) throw new RangeError('a verifier key is missing');
  const verifier = parseVerifierKey(key);
  if (verifier.type !== type) {
    throw new RangeError(`the verifier key is not one of a ${type === signatureTypes.cosignature ? 'witness' : 'log'}`);
  }
  if (known.some(({ publicKey }) => publicKey.equals(verifier.publicKey)))
    throw new RangeError('the key is there twice');
  return verifier;
}

function urlOf([url, ...more]: string[]): string | undefined {
  if (more.length > 0) throw new RangeError('nothing may follow the URL');
  if (url !== undefined && !/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new RangeError('the URL is not one of http or https');
  }
  return url?.replace(/\/+$/, '');
}

function neededOf(count: string | undefined, members: number): number {
  if (members === 0) throw new RangeError('a group has a count and one member at least');
  if (count === 'all') return members;
  const needed = count === 'any' ? 1 : /^[1-9]\d{0,5}$/.test(count ?? '') ? Number(count) : 0;
  if (needed < 1 || needed > members) throw new RangeError(`the count of a group is any, all, or 1 to ${members}`);
  return needed;
}
