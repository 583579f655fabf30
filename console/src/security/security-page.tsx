import type { Access } from '@annals/client';
import { quoted } from '../../../src/query/written.ts';
import { annals } from '../api/annals.ts';
import { credentialScopes, signsInPeople } from '../api/session.ts';
import { bytesText, counted } from '../components/numbers.ts';
import { TabbedViews, type View } from '../components/page.tsx';
import { later } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { ListPage, useList } from '../lists/list-page.tsx';
import { programText } from './program-text.ts';

const ClientsView = later(async () => (await import('./credentials-view.tsx')).ClientsView);
const GrantsView = later(async () => (await import('./grants-view.tsx')).GrantsView);
const KeysView = later(async () => (await import('./credentials-view.tsx')).KeysView);
const ProofView = later(async () => (await import('./proof-view.tsx')).ProofView);
const SessionsView = later(async () => (await import('./sessions-view.tsx')).SessionsView);
const SignInView = later(async () => (await import('./sign-in-view.tsx')).SignInView);

export const securityViews: readonly View[] = [
  { path: 'security/accesses', tab: 'Accesses', scopes: ['changelog.access_read'], Content: AccessesView },
  { path: 'security/sessions', tab: 'Sessions', scopes: credentialScopes, Content: SessionsView },
  ...(signsInPeople
    ? [{ path: 'security/sign-in', tab: 'Sign-in', scopes: credentialScopes, Content: SignInView }]
    : []),
  { path: 'security/clients', tab: 'Clients and keys', scopes: credentialScopes, Content: ClientsView },
  { path: 'security/keys', below: 'security/clients', scopes: credentialScopes, Content: KeysView },
  { path: 'security/grants', tab: 'Programs', scopes: credentialScopes, Content: GrantsView },
  { path: 'security/proof', tab: 'Proof', scopes: ['changelog.proof_read'], Content: ProofView },
];

/** Who had access, and what proves the history. */
export function SecurityPage() {
  return <TabbedViews root="security" label="Security" views={securityViews} />;
}

const words: Readonly<Record<NonNullable<Access['kind']>, string>> = {
  signed_in: 'Signed in',
  signed_out: 'Signed out',
  session_ended: 'Session ended',
  refused: 'Refused',
  link_made: 'Link made',
  client_made: 'Client made',
  client_narrowed: 'Client narrowed',
  client_rotated: 'New client secret',
  client_revoked: 'Client revoked',
  key_made: 'Key made',
  key_narrowed: 'Key narrowed',
  key_rotated: 'New key secret',
  key_revoked: 'Key revoked',
  grant_made: 'Program allowed',
  grant_ended: 'Program ended',
  viewer_token_made: 'Viewer token made',
  export_downloaded: 'Export downloaded',
  read: 'Read the history',
};

const reasons: Readonly<Record<string, string>> = {
  secret: 'with a secret',
  link: 'with a link',
  account: "with the company's account",
};

const refusals: Readonly<Record<string, string>> = {
  secret: 'the secret was wrong',
  revoked: 'the client is revoked',
  rules: 'the rules let them in no longer',
  provider: 'the provider ended the sign-in',
  session: 'the session was ended',
  signed_out: 'the session was signed out',
  expired: 'its time was over',
  too_many: 'there were too many',
  program: 'the program ended it',
  code: 'its code was used twice or by another program',
  reuse: 'a refresh token was used twice or by another program',
};

/** Who signed in or was refused, administered credentials, and downloaded exports. */
function AccessesView() {
  const list = useList({
    name: 'accesses',
    defaultSort: '_id:DESC',
    read: (parameters, signal) => annals().accesses.list(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Accesses"
      lead="Who signed in or was refused, made or revoked clients and keys, and downloaded exports, in the last 400 days."
      example='kind:signed_in name:"Jane Doe"'
      chips={[
        ['Exports', 'kind:export_downloaded'],
        ['Sign-ins', 'kind:signed_in'],
        ['Refused', 'kind:refused'],
      ]}
      noun="access"
      plural="accesses"
      empty={{ icon: 'clock', title: 'There is no access', text: 'No one has signed in yet.' }}
      keyOf={({ id = '' }) => id}
      columns={[
        { label: 'When', sort: '_id', class: 'nowrap', cell: ({ at = '' }) => <Time at={at} /> },
        {
          label: 'Who',
          sort: 'name',
          cell: ({ name = '', onBehalfOf }) => (
            <>
              <Name text={name} />
              {onBehalfOf === undefined ? undefined : (
                <>
                  {' '}
                  for <Name text={onBehalfOf} />
                </>
              )}
            </>
          ),
        },
        {
          label: 'What',
          sort: 'kind',
          class: 'nowrap',
          cell: ({ kind }) => (kind === undefined ? '' : words[kind]),
        },
        {
          label: 'How',
          cell: (access) => <Name class="cell-cut" text={detailsOf(access)} />,
        },
        { label: 'Address', class: 'nowrap', cell: ({ address }) => address && <Name text={address} /> },
        {
          label: 'Browser or program',
          class: 'nowrap',
          title: ({ program }) => program,
          cell: ({ program }) => program && <Name text={programText(program)} />,
        },
        {
          label: 'Session',
          class: 'nowrap',
          cell: (access) => <Session access={access} onFilter={list.setFilter} />,
        },
      ]}
    />
  );
}

/** Leads to all accesses of the session. Reads have none; their client joins them. */
function Session({ access, onFilter }: { readonly access: Access; readonly onFilter: (filter: string) => void }) {
  const { session, client = '' } = access;
  const [field, id] = session === undefined ? ['client', client] : ['session', session];
  if (id === '') return null;
  return (
    <button
      type="button"
      class="text-button mono"
      title={`All accesses of this ${field}: ${id}`}
      onClick={() => onFilter(`${field}:${quoted(id)}`)}
    >
      <Name text={id.length > 12 ? `…${id.slice(-8)}` : id} />
    </button>
  );
}

function byWhom(by: string | number): string {
  return by === '' ? '' : `by ${by}`;
}

function detailsOf({ kind, details = {}, count = 1 }: Access): string {
  const { by = '', why = '', scope = '', subject = '', format = '', bytes = 0, redirect = '' } = details;
  if (kind === 'grant_made') return `answered to ${redirect}`;
  if (kind === 'signed_in') return reasons[by] ?? '';
  if (kind === 'session_ended') return `by ${by}`;
  if (kind === 'refused') return `${counted(count, 'time')}: ${refusals[why] ?? why}`;
  if (kind === 'viewer_token_made') return `${counted(count, 'time')} for ${subject}`;
  if (kind === 'key_revoked' || kind === 'client_revoked' || kind === 'grant_ended') return refusals[why] ?? byWhom(by);
  if (/_(?:narrowed|rotated)$/.test(kind ?? '')) return byWhom(by);
  if (kind === 'read') return `${counted(count, 'request')}: ${Object.keys(details).join(', ')}`;
  if (kind === 'export_downloaded') return `${format}, ${bytesText(Number(bytes))}`;
  return String(scope);
}
