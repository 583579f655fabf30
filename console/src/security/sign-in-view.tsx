import type { ComponentChildren } from 'preact';
import { apiUrl } from '../api/connection.ts';
import { useRequest } from '../api/requests.ts';
import { allows, sessionAnswer } from '../api/session.ts';
import { Button, CopyButton, useWork } from '../components/buttons.tsx';
import { Card, Fact, PageHeader } from '../components/page.tsx';
import { Answer, FailureBox } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { basePath } from '../router/router.tsx';

/** A rule that names this tenant. After a test each claim says whether it holds. */
interface Rule {
  readonly claims: readonly {
    readonly claim: string;
    readonly values: readonly unknown[];
    readonly fault?: 'missing' | 'different' | 'not_verified';
  }[];
  readonly scopes: readonly string[];
  readonly trustsEmail: boolean;
  readonly query?: string;
  readonly hide?: readonly string[];
  readonly actors?: boolean | string;
}

interface TestResult {
  readonly at: string;
  readonly outcome: string;
  readonly isOwn?: boolean;
  readonly claims?: readonly { readonly name: string; readonly value?: string }[];
  readonly rules?: readonly Rule[];
}

interface SignIn {
  readonly issuer: string;
  readonly rules: readonly Rule[];
  readonly test?: TestResult;
}

const url = `${apiUrl}/session/sign-in`;

/** How people sign in with their company's account, and what the rules of this tenant say to an account. */
export function SignInView() {
  const signIn = useRequest(
    'sign-in',
    async (signal) => (await sessionAnswer(url, { signal })).json() as Promise<SignIn>,
  );
  return (
    <div class="stack">
      <PageHeader
        title="Sign-in"
        lead="Who signs in with the company's account, and what they may do in this tenant."
      />
      <Answer of={signIn}>
        {({ issuer, rules, test }) => (
          <>
            <ProviderCard issuer={issuer} />
            <Card title="Rules of this tenant" body="stack">
              {rules.length === 0 ? (
                <p>No rule names this tenant: no one signs in to it with the company's account.</p>
              ) : (
                <>
                  <p>The first rule that matches an account applies, alone.</p>
                  <Rules rules={rules} />
                </>
              )}
            </Card>
            <TestCard test={test} />
          </>
        )}
      </Answer>
    </div>
  );
}

function ProviderCard({ issuer }: { readonly issuer: string }) {
  const logout = `${location.origin}${basePath}oidc/backchannel-logout`;
  return (
    <Card title="Provider">
      <dl class="facts">
        <Fact label="Issuer" text={issuer} />
        <Fact label="Back-channel logout">
          <code>{logout}</code> <CopyButton what="the address of the back-channel logout" text={() => logout} />
          <p class="muted">Register it at the provider, so that a sign-out there ends sessions here at once.</p>
        </Fact>
      </dl>
    </Card>
  );
}

function Rules({ rules }: { readonly rules: readonly Rule[] }) {
  return (
    <ol class="stack numbered">
      {rules.map((rule, index) => (
        <li key={index}>
          <RuleText rule={rule} />
        </li>
      ))}
    </ol>
  );
}

/** A rule as a sentence. */
function RuleText({ rule: { claims, scopes, trustsEmail, query, hide = [], actors } }: { readonly rule: Rule }) {
  return (
    <>
      Accounts whose{' '}
      {joined(
        claims.map(({ claim, values }) => (
          <>
            <Name as="code" text={claim} /> {values.length === 1 ? 'is or contains' : 'is or contains one of'}{' '}
            {joined(
              values.map((value) => <Name key={String(value)} as="code" text={String(value)} />),
              ', ',
            )}
          </>
        )),
        ' and ',
      )}{' '}
      get{' '}
      {joined(
        scopes.map((scope) => <code key={scope}>{scope}</code>),
        ', ',
      )}
      .
      {query === undefined || query === '' ? undefined : (
        <>
          {' '}
          They see only changes that match <Name as="code" text={query} />.
        </>
      )}
      {hide.length === 0 ? undefined : (
        <>
          {' '}
          Hidden:{' '}
          {joined(
            hide.map((path) => <Name key={path} as="code" text={path} />),
            ', ',
          )}
          .
        </>
      )}
      {actors === false ? ' They do not see who made a change.' : undefined}
      {trustsEmail && claims.some(({ claim }) => /^\/?email$/.test(claim))
        ? ' The address need not be verified.'
        : undefined}
    </>
  );
}

function joined(parts: readonly ComponentChildren[], between: string): ComponentChildren {
  return parts.map((part, index) => (
    <span key={index}>
      {index === 0 ? undefined : between}
      {part}
    </span>
  ));
}

function TestCard({ test }: { readonly test: TestResult | undefined }) {
  const { isBusy, failure, act } = useWork(() => {});
  return (
    <Card title="Test" body="stack">
      <p>
        You sign in at the provider and come back. No session begins, and yours stays as it is. You see the values of
        claims if the account is that of your session; of another account, only their names.
      </p>
      {allows('access.credential_manage') ? (
        <p>
          <Button kind="primary" disabled={isBusy} onClick={() => void act(beginTest)}>
            Test the sign-in
          </Button>
        </p>
      ) : (
        <p class="muted">A test needs the scope access.credential_manage.</p>
      )}
      <FailureBox error={failure} />
      {test === undefined ? undefined : <Result test={test} />}
    </Card>
  );
}

async function beginTest(): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const begun = (await (await sessionAnswer(url, { method: 'POST', headers, body: '{}' })).json()) as { url: string };
  location.assign(begun.url);
}

const outcomes: Readonly<Record<string, string>> = {
  admitted: 'This account may sign in.',
  not_admitted: 'This account is refused: no rule of this tenant matches.',
  groups_left_out: 'This account is refused: the provider left out its groups, since there are too many.',
  declined: 'The provider refused the sign-in, or it was cancelled there.',
  provider: "The provider's answer was refused. The log of the service says why.",
  too_many: 'Too many sign-ins failed from this address. Try again in a minute.',
};

const faults: Readonly<Record<string, string>> = {
  missing: 'is missing',
  different: 'has another value',
  not_verified: 'is not verified',
};

function Result({ test: { at, outcome, isOwn = false, rules = [], claims = [] } }: { readonly test: TestResult }) {
  const counts = rules.findIndex((rule) => rule.claims.every(({ fault }) => fault === undefined));
  return (
    <section class="stack" aria-label="Result of the test">
      <p role="status">
        <strong>{outcomes[outcome] ?? outcome}</strong>{' '}
        <span class="muted">
          Tested at <Time at={at} />
          {claims.length === 0 || isOwn ? '' : ', with an account that is not the one of your session'}.
        </span>
      </p>
      {rules.length === 0 ? undefined : (
        <ol class="stack numbered">
          {rules.map((rule, index) => (
            <li key={index}>
              <RuleText rule={rule} />{' '}
              <strong>
                {index === counts ? 'Applies.' : isHeld(rule) ? 'Matches, after another rule.' : 'Does not match:'}
              </strong>{' '}
              {joined(
                rule.claims.flatMap(({ claim, fault }) =>
                  fault === undefined
                    ? []
                    : [
                        <>
                          <Name as="code" text={claim} /> {faults[fault]}
                        </>,
                      ],
                ),
                ', ',
              )}
            </li>
          ))}
        </ol>
      )}
      {claims.length === 0 ? undefined : (
        <DataTable
          label="Claims of the account"
          class="wraps"
          items={claims}
          keyOf={({ name }) => name}
          columns={[
            { label: 'Claim', cell: ({ name }) => <Name as="code" text={name} /> },
            ...(isOwn ? [{ label: 'Value', cell: ({ value = '' }) => <Name text={value} /> }] : []),
          ]}
        />
      )}
    </section>
  );
}

function isHeld({ claims }: Rule): boolean {
  return claims.every(({ fault }) => fault === undefined);
}
