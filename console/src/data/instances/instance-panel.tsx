import { type JsonObject, stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows, readsHistory } from '../../api/session.ts';
import { Button, CopyButton } from '../../components/buttons.tsx';
import { JsonTree } from '../../components/json-tree.tsx';
import { ConfirmDialog, SidePanel } from '../../components/overlays.tsx';
import { FailureBox, Skeleton } from '../../components/states.tsx';
import { tell } from '../../components/toasts.tsx';
import { Name } from '../../components/values.tsx';
import { HistoryLink } from '../../lists/list-page.tsx';
import { Link, place, setParameters } from '../../router/router.tsx';
import { InstanceEditor } from './instance-editor.tsx';

interface InstancePanelProps {
  readonly type: string;
  /** Undefined for a new one. */
  readonly id: string | undefined;
  readonly schema: JsonObject | undefined;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** One instance: its document as it was written, its history, and its editor. */
export function InstancePanel({ type, id, schema, onClose, onChanged }: InstancePanelProps) {
  const {
    value: instance,
    error,
    reload,
  } = useRequest(id === undefined ? undefined : `instance ${type} ${id}`, (signal) =>
    annals()
      .exact.instances(type)
      .get(id ?? '', { signal }),
  );
  const [isDirty, setDirty] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const isEditing = place.value.parameters.has('edit') && allows('schema.custominstance_manage');
  const leave = () => (isDirty ? setLeaving(true) : onClose());
  const saved = (savedId: string) => {
    setDirty(false);
    tell(`${savedId} is saved.`);
    setParameters({ item: savedId, edit: undefined }, { replace: true });
    onChanged();
    reload();
  };
  return (
    <SidePanel
      title={id === undefined ? 'New instance' : <Name text={id} />}
      onClose={leave}
      actions={
        instance === undefined || isEditing ? undefined : (
          <InstanceActions
            type={type}
            instance={instance}
            id={id ?? ''}
            onDeleted={() => {
              onChanged();
              onClose();
            }}
          />
        )
      }
    >
      {error === undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      {id !== undefined && instance === undefined ? (
        error === undefined ? (
          <Skeleton />
        ) : undefined
      ) : isEditing ? (
        <InstanceEditor
          type={type}
          id={id}
          instance={instance}
          schema={schema}
          onDirty={setDirty}
          onSaved={saved}
          onReload={reload}
          onCancel={() => {
            setDirty(false);
            if (id === undefined) onClose();
            else setParameters({ edit: undefined });
          }}
        />
      ) : instance === undefined ? undefined : (
        <div class="stack">
          <p class="page-actions">
            <HistoryLink entity={type} entityId={id ?? ''} />
            {readsHistory() ? (
              <Link to={{ path: 'document', parameters: { entity: type, id: id ?? '' } }}>As it was</Link>
            ) : undefined}
          </p>
          <JsonTree value={instance} />
        </div>
      )}
      {isLeaving ? (
        <ConfirmDialog
          title="Leave without saving?"
          action="Leave"
          onClose={() => setLeaving(false)}
          onConfirm={async () => onClose()}
        >
          <p>What you have written is lost.</p>
        </ConfirmDialog>
      ) : undefined}
    </SidePanel>
  );
}

interface InstanceActionsProps {
  readonly type: string;
  readonly id: string;
  readonly instance: JsonObject;
  readonly onDeleted: () => void;
}

function InstanceActions({ type, id, instance, onDeleted }: InstanceActionsProps) {
  const [isDeleting, setDeleting] = useState(false);
  const mayWrite = allows('schema.custominstance_manage');
  return (
    <>
      <CopyButton text={() => stringifyJson(instance, 2)} what="the JSON" />
      {mayWrite ? (
        <>
          <Button kind="quiet" icon="remove" aria-label="Delete" title="Delete" onClick={() => setDeleting(true)} />
          <Button icon="edit" onClick={() => setParameters({ edit: '1' })}>
            Edit
          </Button>
        </>
      ) : undefined}
      {isDeleting ? (
        <ConfirmDialog
          title="Delete the instance?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await annals().instances(type).delete(id);
            tell(`${id} is deleted.`);
            onDeleted();
          }}
        >
          <p>
            <Name text={id} /> is gone; its history stays.
          </p>
        </ConfirmDialog>
      ) : undefined}
    </>
  );
}
