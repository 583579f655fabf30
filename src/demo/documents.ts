import type { RelatedDocument } from './demo-change.ts';

export interface Address {
  street: string;
  zip: string;
  city: string;
  country: string;
}

export interface LineItem {
  product: string;
  name: string;
  quantity: number;
  unitPrice: number;
}

export interface Site {
  name: string;
  active: boolean;
  default: boolean;
  currency: string;
  languages: string[];
  shipping: { zone: string; countries: string[]; fee: number; freeFrom: number }[];
  homeBase: Address;
}

export interface Product {
  name: { en: string; de: string };
  published: boolean;
  price: { amount: number; currency: string; taxClass: string };
  stock: number;
  weightKg: number;
  categories: string[];
  attributes: Record<string, string | number | boolean>;
  description?: string;
}

export interface Customer {
  firstName: string;
  lastName: string;
  email: string;
  company: string | null;
  addresses: (Address & { kind: 'billing' | 'shipping' })[];
  preferences: { newsletter: boolean; language: string };
  phone?: string;
}

export interface Company {
  name: string;
  taxNumber: string;
  address: Address;
  contacts: { name: string; email: string }[];
  terms: { paymentDays: number; creditLimit: number };
}

export interface Order {
  site: string;
  status: 'CREATED' | 'CONFIRMED' | 'DECLINED' | 'SHIPPED' | 'COMPLETED' | 'RETURNED';
  customer: { id: string; name: string };
  items: LineItem[];
  coupon: string | null;
  shippingAddress: Address;
  payment: { method: string; status: 'OPEN' | 'PAID' | 'FAILED' | 'REFUNDED' };
  totals: { net: number; tax: number; gross: number; currency: string };
  shipments: { carrier: string; trackingNumber: string }[];
  note?: string;
}

export interface Quote {
  status: 'DRAFT' | 'SENT' | 'ACCEPTED' | 'DECLINED' | 'EXPIRED';
  company: { id: string; name: string };
  items: LineItem[];
  total: number;
  validUntil: string;
  order: string | null;
}

export interface Coupon {
  name: string;
  discount: { type: 'PERCENT' | 'ABSOLUTE'; value: number };
  validUntil: string;
  active: boolean;
  redemptions: { used: number; limit: number | null };
}

export interface Segment {
  name: string;
  site: string;
  criteria: { field: string; operator: string; value: string | number }[];
  memberCount: number;
}

export interface CustomerGroup {
  name: { en: string; de: string };
  description: string;
  priceListFactor: number;
}

export interface GroupAssignment {
  group: string;
  customer: string;
  role: 'MEMBER' | 'MANAGER';
}

export interface WarrantyClaim {
  status: 'OPEN' | 'IN_INSPECTION' | 'APPROVED' | 'REJECTED' | 'CLOSED';
  order: string;
  product: string;
  amount: number;
  complaint: string;
  findings: string[];
  resolution: string | null;
}

/** Every kind of document the shop keeps, under its entity type. A custom entity's type is in capitals. */
export interface Documents {
  site: Site;
  product: Product;
  customer: Customer;
  company: Company;
  order: Order;
  quote: Quote;
  coupon: Coupon;
  segment: Segment;
  group: CustomerGroup;
  'group-assignment': GroupAssignment;
  WARRANTY_CLAIM: WarrantyClaim;
}

export type Entity = keyof Documents;

interface Description<Document> {
  schemaVersion?: string;
  name?(document: Document, id: string): string;
  related?(document: Document): RelatedDocument[];
}

/** What a change entry says of a document besides its content. */
export const descriptions: { readonly [E in Entity]: Description<Documents[E]> } = {
  site: { name: (site) => site.name },
  product: { schemaVersion: '2', name: (product) => product.name.en },
  customer: { schemaVersion: '2', name: (customer) => `${customer.firstName} ${customer.lastName}` },
  company: { name: (company) => company.name },
  order: {
    schemaVersion: '3',
    name: (_order, id) => `Order ${id}`,
    related: (order) => [{ entity: 'customer', entityId: order.customer.id }],
  },
  quote: { schemaVersion: '1', related: (quote) => [{ entity: 'company', entityId: quote.company.id }] },
  coupon: { name: (coupon) => coupon.name },
  segment: { name: (segment) => segment.name },
  group: { name: (group) => group.name.en },
  'group-assignment': {
    related: (assignment) => [
      { entity: 'group', entityId: assignment.group },
      { entity: 'customer', entityId: assignment.customer },
    ],
  },
  WARRANTY_CLAIM: {
    schemaVersion: '1',
    name: (claim) => claim.complaint,
    related: (claim) => [
      { entity: 'order', entityId: claim.order },
      { entity: 'product', entityId: claim.product },
    ],
  },
};
