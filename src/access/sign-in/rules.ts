import { type Static, Type } from 'typebox';
import { AnnalsError, OperatorError } from '../../core/errors.ts';
import { shownActorsOf } from '../../core/written-restriction.ts';
import { writtenActors } from '../../http/body-members.ts';
import type { ReadRestriction, Restriction } from '../../http/credentials.ts';
import { compileFaultFinder } from '../../http/schema-faults.ts';
import { isScope, restrictableScopes, type Scope } from '../../http/scopes.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';

const wantedValue = Type.Union([Type.String(), Type.Boolean(), Type.Array(Type.String(), { minItems: 1 })]);
const Rule = Type.Object(
  {
    claims: Type.Record(Type.String(), wantedValue, { minProperties: 1 }),
    tenants: Type.Array(Type.String({ pattern: tenantPattern.source, 'x-must': 'be the name of a tenant' }), {
      minItems: 1,
    }),
    scopes: Type.Array(Type.String(), { minItems: 1 }),
    trustEmail: Type.Optional(Type.Boolean()),
    query: Type.Optional(Type.String()),
    hide: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    actors: Type.Optional(writtenActors('What they see of who made a change.')),
  },
  { additionalProperties: false },
);
const RulesFile = Type.Object({ rules: Type.Array(Rule, { minItems: 1 }) }, { additionalProperties: false });

type RuleOfFile = Static<typeof Rule>;

/** The claims of an ID token. */
export type Claims = Readonly<Record<string, unknown>>;

/** A person's scopes in a tenant, and restriction of its change history. */
export interface Admission {
  readonly scopes: readonly Scope[];
  readonly restriction?: Restriction | undefined;
}

/** By tenant. */
export type Admissions = ReadonlyMap<string, Admission>;

/** A claim that a rule requires, and how it was judged. */
export interface JudgedClaim {
  readonly claim: string;
  /** Any of these matches. */
  readonly values: readonly unknown[];
  /** Undefined: it holds. */
  readonly fault?: 'missing' | 'different' | 'not_verified' | undefined;
}

/** A rule as the people of one of its tenants may know it. */
export interface RuleOfTenant extends Partial<Pick<RuleOfFile, 'query' | 'hide' | 'actors'>> {
  readonly claims: readonly JudgedClaim[];
  readonly scopes: readonly Scope[];
  readonly trustsEmail: boolean;
}

export interface SignInRules {
  /** The rules that name the tenant, in their order. With claims, the faults of these. */
  ofTenant(tenant: string, claims?: Claims): readonly RuleOfTenant[];
  /** For the log: the claims that did not hold, by the number of each rule, from 1. */
  tried(claims: Claims): Readonly<Record<number, readonly string[]>>;
  /** The tenants that admit the person. Only the first matching rule of each counts. */
  admit(claims: Claims): Admissions;
  /** Whether a rule needs groups that the provider left out because there are too many. */
  lacksGroups(claims: Claims): boolean;
  /** Whether these lack a claim that a rule requires. */
  lacksClaims(claims: Claims): boolean;
}

const faultsOf = compileFaultFinder(RulesFile);

/**
 * Parses the rules that admit a company's people. Throws an OperatorError with the first fault: a file with a fault is
 * rejected as a whole.
 *
 * @example
 * const rules = readRules('{"rules":[{"claims":{"groups":"auditors"},"tenants":["acme"],"scopes":["changelog.changelog_read"]}]}', readRestriction);
 * rules.admit({ groups: ['auditors'] }); // acme, with that scope
 */
export function readRules(text: string, readRestriction: ReadRestriction): SignInRules {
  const rules = parse(text).map(({ claims, ...rule }, place) => ({
    ...rule,
    required: Object.entries(claims).map(([name, values]) => ({
      name,
      path: pathOfClaim(name),
      values: [values].flat(),
    })),
    scopes: rule.scopes.filter(isScope),
    restriction: restrictionOf(rule, place, readRestriction),
  }));
  const named = new Set(rules.flatMap(claimsOf));
  return {
    admit(claims) {
      const admitted = new Map<string, Admission>();
      for (const rule of rules) {
        if (!matches(rule, claims)) continue;
        for (const tenant of rule.tenants) {
          if (!admitted.has(tenant)) admitted.set(tenant, { scopes: rule.scopes, restriction: rule.restriction });
        }
      }
      return admitted;
    },
    ofTenant: (tenant, claims) =>
      rules.filter(({ tenants }) => tenants.includes(tenant)).map((rule) => shownRule(rule, claims)),
    tried: (claims) =>
      Object.fromEntries(
        rules
          .slice(0, maxTried)
          .map((rule, place) => [
            place + 1,
            rule.required.filter((claim) => faultOf(claim, rule, claims) !== undefined).map(({ name }) => name),
          ]),
      ),
    lacksGroups: (claims) => leavesOutGroups(claims) && named.has('groups'),
    lacksClaims: (claims) => [...named].some((claim) => ownMember(claims, claim) === undefined),
  };
}

function parse(text: string): RuleOfFile[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new OperatorError('the file of ANNALS_OIDC_RULES is not valid JSON');
  }
  for (const fault of faultsOf(file)) {
    if (fault !== undefined) throw new OperatorError(`the file of ANNALS_OIDC_RULES: ${fault.field} ${fault.message}`);
  }
  const { rules } = file as Static<typeof RulesFile>;
  for (const [place, { scopes }] of rules.entries()) {
    const unknown = scopes.find((scope) => !isScope(scope));
    if (unknown !== undefined)
      throw new OperatorError(`the file of ANNALS_OIDC_RULES: rules.${place}.scopes has the unknown scope ${unknown}`);
  }
  return rules;
}

function restrictionOf(
  { query, hide, actors, scopes }: Omit<RuleOfFile, 'claims'>,
  place: number,
  read: ReadRestriction,
): Restriction | undefined {
  if (query === undefined && hide === undefined && actors === undefined) return undefined;
  const wider = scopes.find((scope) => !restrictableScopes.some((allowed) => allowed === scope));
  if (wider !== undefined)
    throw new OperatorError(
      `the file of ANNALS_OIDC_RULES: rules.${place} cannot have ${wider} with query, hide or actors`,
    );
  try {
    return read([
      { query: query ?? '', hide: hide ?? [], ...(actors !== undefined && { actors: shownActorsOf(actors) }) },
    ]);
  } catch (error) {
    if (!(error instanceof AnnalsError)) throw error;
    throw new OperatorError(`the file of ANNALS_OIDC_RULES: rules.${place}: ${error.message}`);
  }
}

/** Rules of a line of the log. */
const maxTried = 50;

interface RequiredClaim {
  /** As written. */
  readonly name: string;
  /** Its name, and the keys within it. */
  readonly path: readonly string[];
  /** Any of these matches. */
  readonly values: readonly unknown[];
}

interface RequiredClaims {
  readonly required: readonly RequiredClaim[];
  /** Whether to accept an e-mail address that the provider has not verified. */
  readonly trustEmail?: boolean;
}

/** The names of the claims that the rule requires. */
function claimsOf({ required, trustEmail = false }: RequiredClaims): string[] {
  const names = required.map(({ path: [claim = ''] }) => claim);
  return names.includes('email') && !trustEmail ? [...names, 'email_verified'] : names;
}

/** Every claim of the rule must match. */
function matches(rule: RequiredClaims, claims: Claims): boolean {
  return rule.required.every((claim) => faultOf(claim, rule, claims) === undefined);
}

function faultOf(
  { path, values }: RequiredClaim,
  { trustEmail = false }: Pick<RequiredClaims, 'trustEmail'>,
  claims: Claims,
): JudgedClaim['fault'] {
  const found = path.reduce<unknown>(ownMember, claims);
  if (found === undefined) return 'missing';
  if (path[0] === 'email' && !trustEmail && claims.email_verified !== true) return 'not_verified';
  const has: unknown[] = [found].flat();
  return values.some((value) => has.includes(value)) ? undefined : 'different';
}

function shownRule(
  rule: RequiredClaims & Pick<RuleOfTenant, 'scopes' | 'query' | 'hide' | 'actors'>,
  claims: Claims | undefined,
): RuleOfTenant {
  const { required, scopes, trustEmail: trustsEmail = false, query, hide, actors } = rule;
  return {
    claims: required.map((claim) => ({
      claim: claim.name,
      values: claim.values,
      fault: claims && faultOf(claim, rule, claims),
    })),
    scopes,
    trustsEmail,
    ...(query !== undefined && { query }),
    ...(hide !== undefined && { hide }),
    ...(actors !== undefined && { actors }),
  };
}

/** A claim by name or, with a leading slash, by JSON Pointer (RFC 6901). */
function pathOfClaim(name: string): string[] {
  if (!name.startsWith('/')) return [name];
  const keys = name.slice(1).split('/');
  return keys.map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function ownMember(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}

/** Entra ID returns a URL instead of the groups of a person with more than 200. */
function leavesOutGroups(claims: Claims): boolean {
  return ownMember(claims._claim_names, 'groups') !== undefined || claims.hasgroups === true;
}
