import { readFileSync, statSync } from 'node:fs';
import { OperatorError } from '../../core/errors.ts';
import type { ReadRestriction } from '../../http/credentials.ts';
import { checkClientName } from '../oauth/client-identity.ts';
import { LogoutTokenFault, type ProviderLogout } from './logout-token.ts';
import { type Checks, createIdentityProvider, type IdentityProvider, type Person } from './provider.ts';
import { type Admissions, type Claims, type RuleOfTenant, readRules, type SignInRules } from './rules.ts';

/** Why no tenant admits a person. */
type NotAdmitted = 'not_admitted' | 'groups_left_out';

/** A sign-in that was refused, for the log: names of claims, without values. Declined: no person is known. */
export interface RefusedSignIn {
  readonly refused: NotAdmitted | 'declined';
  readonly person?: {
    readonly issuer: string;
    readonly subject: string;
    readonly claims: readonly string[];
    /** The claims that did not hold, by the number of each rule. */
    readonly rules: Readonly<Record<number, readonly string[]>>;
  };
}

/** A sign-in that starts no session: the outcome of one tenant's rules. */
export interface JudgedSignIn {
  readonly issuer: string;
  readonly subject: string;
  readonly name: string;
  readonly claims: Claims;
  readonly rules: readonly RuleOfTenant[];
  readonly outcome: 'admitted' | NotAdmitted;
}

/** A person admitted by at least one tenant. */
export interface AdmittedPerson {
  readonly issuer: string;
  readonly subject: string;
  /** Shown as actor in change entries. */
  readonly name: string;
  readonly refreshToken: string | undefined;
  /** The signed token. */
  readonly idToken: string | undefined;
  /** The session at the provider; undefined if the ID token names none. */
  readonly sid: string | undefined;
  /** When the sign-in ends if it cannot be renewed; milliseconds since 1970. */
  readonly expiresAt: number;
  readonly admissions: Admissions;
}

/** Sign-in with a company account (contract 18). Every method rejects if the provider is unreachable. */
export interface PeopleSignIn {
  readonly issuer: string;
  begin: IdentityProvider['begin'];
  /** Undefined if the code is not the provider's or was used before. */
  finish(callback: URL, checks: Checks): Promise<AdmittedPerson | RefusedSignIn | undefined>;
  /** As `finish`, for a test of the rules of a tenant. */
  judge(callback: URL, checks: Checks, tenant: string): Promise<JudgedSignIn | 'declined' | undefined>;
  /** The rules that name the tenant. */
  rulesOf(tenant: string): readonly RuleOfTenant[];
  /** What a logout token ends, or in printable ASCII why it does not count. */
  readLogout(token: string): Promise<ProviderLogout | string>;
  /** Renews the sign-in; undefined if the provider ended it. `onReplaced`: see `IdentityProvider`. */
  renew(
    refreshToken: string,
    subject: string,
    onReplaced: (refreshToken: string) => void,
  ): Promise<AdmittedPerson | NotAdmitted | undefined>;
  signOutUrl: IdentityProvider['signOutUrl'];
}

interface SignInSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
  readonly rulesFile: string;
  readonly baseUrl: string;
}

/** Reads the rules. Throws an OperatorError for invalid rules. Contacts the provider only on the first sign-in. */
export function createPeopleSignIn(
  { rulesFile, baseUrl, ...provider }: SignInSettings,
  {
    now,
    readRestriction,
    onBadRules,
  }: { now: () => number; readRestriction: ReadRestriction; onBadRules: (error: unknown) => void },
): PeopleSignIn {
  const rules = watchedRules(rulesFile, (text) => readRules(text, readRestriction), onBadRules);
  const identities = createIdentityProvider({
    ...provider,
    lacksClaims: (claims) => rules().lacksClaims(claims),
    callback: `${baseUrl}/console/oidc/callback`,
    afterSignOut: `${baseUrl}/console/`,
    now,
  });

  function admit(person: Person): AdmittedPerson | NotAdmitted {
    const admissions = rules().admit(person.claims);
    if (admissions.size === 0) return whyNot(person);
    const { claims: _, ...signedIn } = person;
    return { ...signedIn, admissions, name: nameOf(person) };
  }

  function whyNot({ claims }: Person): NotAdmitted {
    return rules().lacksGroups(claims) ? 'groups_left_out' : 'not_admitted';
  }

  return {
    issuer: identities.issuer,
    begin: (options) => identities.begin(options),
    async finish(callback, checks) {
      const person = await identities.finish(callback, checks);
      if (person === 'declined') return { refused: person };
      if (person === undefined) return undefined;
      const admitted = admit(person);
      if (typeof admitted === 'object') return admitted;
      const { issuer, subject, claims } = person;
      const known = { issuer, subject, claims: namesOf(claims), rules: rules().tried(claims) };
      return { refused: admitted, person: known };
    },
    async judge(callback, checks, tenant) {
      const person = await identities.finish(callback, checks);
      if (typeof person !== 'object') return person;
      const { issuer, subject, claims } = person;
      const judged = rules().ofTenant(tenant, claims);
      const admits = judged.some((rule) => rule.claims.every(({ fault }) => fault === undefined));
      const outcome = admits ? 'admitted' : whyNot(person);
      return { issuer, subject, name: nameOf(person), claims, rules: judged, outcome };
    },
    rulesOf: (tenant) => rules().ofTenant(tenant),
    async readLogout(token) {
      try {
        return await identities.readLogout(token);
      } catch (error) {
        if (error instanceof LogoutTokenFault) return error.message;
        throw error;
      }
    },
    async renew(refreshToken, subject, onReplaced) {
      const person = await identities.renew(refreshToken, subject, onReplaced);
      return person === undefined ? undefined : admit(person);
    },
    signOutUrl: (idToken) => identities.signOutUrl(idToken),
  };
}

/** Claims of a line of the log, and characters of a name in it. */
const maxClaims = 100;
const maxClaimName = 100;

function namesOf(claims: Claims): string[] {
  const names = Object.keys(claims).slice(0, maxClaims);
  return names.map((name) => name.slice(0, maxClaimName));
}

/** The rules of the file, reloaded after it changes. An invalid file changes nothing. */
function watchedRules(
  file: string,
  read: (text: string) => SignInRules,
  onBadRules: (error: unknown) => void,
): () => SignInRules {
  let current = { stamp: stampOf(file), rules: read(textOf(file)) };
  return () => {
    try {
      const stamp = stampOf(file);
      if (stamp !== current.stamp) {
        // An invalid file too: it is reported once.
        current = { ...current, stamp };
        current = { stamp, rules: read(textOf(file)) };
      }
    } catch (error) {
      onBadRules(error);
    }
    return current.rules;
  };
}

/** Differs between versions of the file. */
function stampOf(file: string): string {
  const { mtimeMs = 0, size = 0, ino = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${size} ${ino}`;
}

/** Bytes. */
export const maxRulesBytes = 1024 * 1024;

/** Regular files only: reading a pipe would block the process. */
function textOf(file: string): string {
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new OperatorError('ANNALS_OIDC_RULES names something other than a file');
    if (status.size > maxRulesBytes) throw new OperatorError('the file of ANNALS_OIDC_RULES is longer than 1 MiB');
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError('the file of ANNALS_OIDC_RULES cannot be read', { cause: error });
  }
}

/** The first valid actor name of: name, e-mail address, subject. */
function nameOf({ claims, subject }: Person): string {
  const { name, email } = claims;
  return [name, email].find(mayBeName) ?? subject;
}

function mayBeName(text: unknown): text is string {
  if (typeof text !== 'string') return false;
  try {
    checkClientName(text);
    return true;
  } catch {
    return false;
  }
}
