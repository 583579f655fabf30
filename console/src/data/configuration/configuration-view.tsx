import type { ExactConfiguration } from '@annals/client';
import { stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { Icon } from '../../components/icon.tsx';
import { counted, countText } from '../../components/numbers.ts';
import { ConfirmButton } from '../../components/overlays.tsx';
import { PageHeader } from '../../components/page.tsx';
import { Badge, EmptyState, FailureBox, LoadingLine, Skeleton } from '../../components/states.tsx';
import { DataTable } from '../../components/table.tsx';
import { Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { HistoryLink } from '../../lists/list-page.tsx';
import { place, setParameters } from '../../router/router.tsx';
import { ConfigurationDialog } from './configuration-dialog.tsx';

/** Rows that are made at once. */
const portion = 200;

/** The settings of the tenant. A secured value never comes back. */
export function ConfigurationView() {
  const { parameters } = place.value;
  const part = parameters.get('key') ?? '';
  const edited = parameters.get('edit') ?? undefined;
  const [shown, setShown] = useState(portion);
  const { value, error, isLoading, reload } = useRequest('configuration', (signal) =>
    annals().exact.configurations.list({}, { signal }),
  );
  const items = (value ?? []).filter(({ key }) => key.toLowerCase().includes(part.toLowerCase()));
  const mayWrite = allows('configuration.configuration_manage');
  const add = mayWrite ? (
    <Button kind="primary" icon="plus" onClick={() => setParameters({ edit: '', new: 1 })}>
      New setting
    </Button>
  ) : undefined;
  const close = () => setParameters({ edit: undefined, new: undefined });
  const isNew = parameters.has('new');
  const current = edited === undefined ? undefined : value?.find(({ key }) => key === edited);
  return (
    <>
      <PageHeader
        title="Configuration"
        lead="Settings of the tenant. Secured values are kept encrypted and never shown."
      >
        {add}
      </PageHeader>
      <div class="filter-bar">
        <div class="filter-field">
          <Icon name="search" />
          <input
            class="control"
            type="search"
            aria-label="Keys that contain"
            placeholder="Keys that contain …"
            value={part}
            onInput={(event) => setParameters({ key: event.currentTarget.value }, { replace: true })}
          />
        </div>
      </div>
      <section class="card list-card" aria-busy={isLoading}>
        <LoadingLine active={isLoading} />
        <div class="card-header list-header">
          <span role="status">{value === undefined ? ' ' : counted(items.length, 'setting')}</span>
          <Button kind="quiet" icon="refresh" aria-label="Refresh" title="Refresh" onClick={reload} />
        </div>
        <FailureBox error={error} onRetry={reload} />
        {value === undefined && error === undefined ? <Skeleton /> : undefined}
        {value !== undefined && items.length === 0 ? (
          part === '' ? (
            <EmptyState icon="data" title="There is no setting">
              <p>
                For example <code>notificationEmail</code>, where a mail goes when an agent is disabled, or{' '}
                <code>providerApiToken</code>, your own key for completions.
              </p>
              {add}
            </EmptyState>
          ) : (
            <EmptyState icon="search" title="No key contains this">
              <Button onClick={() => setParameters({ key: undefined })}>Show all</Button>
            </EmptyState>
          )
        ) : undefined}
        {items.length === 0 ? undefined : (
          <DataTable
            label="Settings"
            class="wraps"
            items={items.slice(0, shown)}
            keyOf={({ key }) => key}
            columns={[
              {
                label: 'Key',
                cell: ({ key, description }) => (
                  <>
                    <Name as="strong" class="mono" text={key} />
                    {description === undefined ? undefined : <Name as="div" class="muted" text={description} />}
                  </>
                ),
              },
              { label: 'Value', cell: (item) => <Value item={item} /> },
              { label: 'Version', name: 'version', class: 'number', cell: ({ version }) => version },
              {
                label: <span class="visually-hidden">Actions</span>,
                cell: ({ key }) => <Actions name={key} mayWrite={mayWrite} onChanged={reload} />,
              },
            ]}
          />
        )}
        {items.length <= shown ? undefined : (
          <div class="list-rest">
            <Button onClick={() => setShown(shown + portion)}>Show more of {countText(items.length - shown)}</Button>
          </div>
        )}
      </section>
      {mayWrite && (isNew || current !== undefined) ? (
        <ConfigurationDialog key={edited} current={isNew ? undefined : current} onClose={close} onSaved={reload} />
      ) : undefined}
    </>
  );
}

/** Characters of a value in the table. */
const maxValue = 160;

function Value({ item: { value, secured } }: { readonly item: ExactConfiguration }) {
  if (secured) return <Badge tone="plain">secured</Badge>;
  const text = stringifyJson(value);
  return <Name as="code" text={text.length > maxValue ? `${text.slice(0, maxValue)} …` : text} />;
}

function Actions({ name, mayWrite, onChanged }: { name: string; mayWrite: boolean; onChanged: () => void }) {
  return (
    <span class="row-actions">
      <HistoryLink entity="configuration" entityId={name} />
      {mayWrite ? (
        <>
          <Button
            kind="quiet"
            icon="edit"
            aria-label={`Edit ${name}`}
            title="Edit"
            onClick={() => setParameters({ edit: name, new: undefined })}
          />
          <ConfirmButton
            kind="quiet"
            icon="remove"
            aria-label={`Delete ${name}`}
            title="Delete"
            ask={{
              title: 'Delete the setting?',
              run: async () => {
                await annals().configurations.delete(name);
                tell(`${name} is deleted.`);
                onChanged();
              },
              body: (
                <p>
                  <code>
                    <Name text={name} />
                  </code>{' '}
                  and its value are gone; its history stays.
                </p>
              ),
            }}
          />
        </>
      ) : undefined}
    </span>
  );
}
