import type {
  ClientItem,
  ClientNarrowing,
  ClientWithSecret,
  KeyItem,
  KeyNarrowing,
  KeyWithSecret,
  NewClient,
  NewKey,
} from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { allows, historyScopes, session } from '../api/session.ts';
import { keyName } from '../components/credentials.tsx';
import { CheckField, SelectField, TextField } from '../components/forms.tsx';
import { Dialog } from '../components/overlays.tsx';

/** A client or a key, as its list shows it. */
export type Credential = ClientItem & Pick<KeyItem, 'models' | 'rate' | 'user'>;
export type CredentialKind = 'client' | 'key';
/** What is shown once. */
export type Secret = Pick<ClientWithSecret, 'id' | 'clientSecret'> | Pick<KeyWithSecret, 'key'>;

export function nameOf(kind: CredentialKind, { id = '', name = id }: Credential): string {
  return kind === 'key' && name === id ? keyName(id) : name;
}

/** What it sees of the history, in a line for each part. */
export function partsOf({ restriction = [] }: Credential): string[] {
  if (restriction.length === 0) return ['unrestricted'];
  return restriction.flatMap(({ query = '', hide = [], actors = true }) => [
    ...(query === '' ? [] : [query]),
    ...(hide.length === 0 ? [] : [`without ${hide.join(', ')}`]),
    ...(actors === true ? [] : [actors === 'all' ? 'with the ids of actors' : 'without actors']),
  ]);
}

/** Rights as the form has them. */
interface Draft {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly query: string;
  readonly hide: string;
  readonly actors: '' | 'false' | 'names' | 'all';
  readonly days: string;
  readonly models: string;
  readonly rate: string;
}

/** How long credentials last that a session makes: those of a link's session end with it, those of a person after 90 days. */
const lifetimes = {
  link: [['', 'with this session']],
  account: [
    ['7', 'after 7 days'],
    ['30', 'after 30 days'],
    ['', 'after 90 days'],
  ],
  secret: [
    ['7', 'after 7 days'],
    ['30', 'after 30 days'],
    ['90', 'after 90 days'],
    ['365', 'after a year'],
    ['', 'with its maker'],
  ],
} as const;
const shorter = lifetimes.secret.slice(0, -1);
const defaultDays = { link: '', account: '', secret: '90' } as const;

const nothing: Draft = { name: '', scopes: [], query: '', hide: '', actors: '', days: '', models: '', rate: '' };

interface MakeDialogProps {
  readonly kind: CredentialKind;
  readonly onMade: () => void;
  readonly onSecret: (secret: Secret) => void;
  readonly onClose: () => void;
}

/** Makes a client or a key within the rights of the session. */
export function MakeDialog({ kind, onMade, onSecret, onClose }: MakeDialogProps) {
  const [draft, setDraft] = useState<Draft>({ ...nothing, days: defaultDays[session.value?.by ?? 'secret'] });
  const [writtenUser, setUser] = useState('');
  const make = async () => {
    const name = draft.name.trim();
    const user = writtenUser.trim();
    const named = { ...(name !== '' && { name }), ...(user !== '' && { user }) };
    const made = { ...rightsOf(draft), scopes: draft.scopes, ...named };
    const secret =
      kind === 'client' ? await annals().clients.create(made as NewClient) : await annals().keys.create(made as NewKey);
    onMade();
    onSecret(secret);
    // The dialog with the secret takes its place.
    return false;
  };
  return (
    <Dialog
      title={`New ${kind}`}
      onClose={onClose}
      actions={[{ label: 'Make', isReady: draft.scopes.length > 0, run: make }]}
    >
      <TextField
        kind="name"
        label="Name"
        hint="The actor of its changes. Left empty: its id."
        value={draft.name}
        onText={(name) => setDraft({ ...draft, name })}
      />
      <RightsFields kind={kind} draft={draft} scopes={ownScopes(kind)} onChange={setDraft} />
      {kind === 'key' ? (
        <TextField
          kind="name"
          label="User"
          hint="For ai.completion_manage: whom all its calls are for, as budgets of users count. Left empty: whom a call names."
          value={writtenUser}
          onText={setUser}
        />
      ) : undefined}
    </Dialog>
  );
}

interface NarrowDialogProps {
  readonly kind: CredentialKind;
  readonly credential: Credential;
  readonly onNarrowed: () => void;
  readonly onClose: () => void;
}

/** Removes rights of a client or a key. */
export function NarrowDialog({ kind, credential, onNarrowed, onClose }: NarrowDialogProps) {
  const { id = '', scopes = [], models = [], rate } = credential;
  const before: Draft = { ...nothing, scopes, models: models.join(' '), rate: rate === undefined ? '' : String(rate) };
  const [draft, setDraft] = useState(before);
  const changed: Partial<Draft> = Object.fromEntries(
    Object.entries(draft).filter(([member, value]) => String(value) !== String(before[member as keyof Draft])),
  );
  const narrow = async () => {
    const narrowing = { ...rightsOf({ ...nothing, ...changed }), ...(changed.scopes && { scopes: changed.scopes }) };
    if (kind === 'client') await annals().clients.narrow(id, narrowing as ClientNarrowing);
    else await annals().keys.narrow(id, narrowing as KeyNarrowing);
    onNarrowed();
  };
  return (
    <Dialog
      title={`Narrow ${nameOf(kind, credential)}`}
      onClose={onClose}
      actions={[{ label: 'Narrow', isReady: Object.keys(changed).length > 0 && draft.scopes.length > 0, run: narrow }]}
    >
      <p>Rights can only be removed. What it sees now: {partsOf(credential).join('; ')}.</p>
      <RightsFields kind={kind} draft={draft} scopes={scopes} narrows onChange={setDraft} />
    </Dialog>
  );
}

interface RightsFieldsProps {
  readonly kind: CredentialKind;
  readonly draft: Draft;
  /** Those to choose from. */
  readonly scopes: readonly string[];
  readonly narrows?: boolean;
  readonly onChange: (draft: Draft) => void;
}

function RightsFields({ kind, draft, scopes, narrows = false, onChange }: RightsFieldsProps) {
  const text = (member: 'query' | 'hide' | 'models' | 'rate') => ({
    value: draft[member],
    onText: (written: string) => onChange({ ...draft, [member]: written }),
  });
  const unchanged = narrows ? 'as it is' : undefined;
  return (
    <>
      <fieldset class="rights">
        <legend>Scopes</legend>
        {scopes.map((scope) => (
          <CheckField
            key={scope}
            checked={draft.scopes.includes(scope)}
            onCheck={(isChecked) => {
              const chosen = scopes.filter((one) => (one === scope ? isChecked : draft.scopes.includes(one)));
              onChange({ ...draft, scopes: chosen });
            }}
          >
            <code>{scope}</code>
          </CheckField>
        ))}
      </fieldset>
      <TextField
        kind="code"
        label={narrows ? 'Further query' : 'Query'}
        hint="Only changes that match are shown. Left empty: all."
        placeholder="entity:order"
        {...text('query')}
      />
      <TextField
        kind="code"
        label={narrows ? 'Further hidden paths' : 'Hidden paths'}
        hint="Their values are masked. Separate them with blanks."
        placeholder="payment.card customer.*.phone"
        {...text('hide')}
      />
      <SelectField
        label="Actor details"
        hint="What it sees of who made a change. With a query or hidden paths: names, unless you choose otherwise."
        value={draft.actors}
        choices={[
          ['', unchanged ?? 'what the scopes allow'],
          ['all', 'names, ids and for whom they act'],
          ['names', 'names only'],
          ['false', 'none'],
        ]}
        onChoose={(actors) => onChange({ ...draft, actors })}
      />
      <SelectField
        label="Ends"
        value={draft.days}
        choices={narrows ? [['', 'as it is'], ...shorter] : lifetimes[session.value?.by ?? 'secret']}
        onChoose={(days) => onChange({ ...draft, days })}
      />
      {kind === 'key' ? (
        <>
          <TextField
            kind="code"
            label="Models"
            hint="For ai.completion_manage. Separate them with blanks; left empty: all of the tenant."
            placeholder="openai/gpt-5"
            {...text('models')}
          />
          <TextField
            kind="number"
            label="Requests a second"
            hint="Left empty: the limit of the tenant."
            {...text('rate')}
          />
        </>
      ) : undefined}
    </>
  );
}

/** The members that are written. */
function rightsOf({ query, hide, actors, days, models, rate }: Draft) {
  const wordsOf = (text: string) => text.split(/[\s,]+/).filter((word) => word !== '');
  return {
    ...(query.trim() !== '' && { query: query.trim() }),
    ...(wordsOf(hide).length > 0 && { hide: wordsOf(hide) }),
    ...(actors !== '' && { actors: actors === 'false' ? false : actors }),
    ...(days !== '' && { expiresIn: Number(days) * 86_400 }),
    ...(wordsOf(models).length > 0 && { models: wordsOf(models) }),
    ...(rate.trim() !== '' && { rate: Number(rate) }),
  };
}

/** What the session may give away. */
function ownScopes(kind: CredentialKind): readonly string[] {
  if (kind === 'client') return session.value?.scopes ?? [];
  return [
    ...(allows(...historyScopes) ? ['changelog.changelog_read'] : []),
    ...(allows('ai.completion_manage') ? ['ai.completion_manage'] : []),
  ];
}
