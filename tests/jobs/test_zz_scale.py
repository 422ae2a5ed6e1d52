import time, broker.desk.proposal as p
real=p._settled
def timed(*a):
    t=time.time(); r=real(*a); print("settled", time.time()-t); return r
p._settled=timed
rv=p.verify; n=[0]
def v(*a):
    n[0]+=1; return rv(*a)
p.verify=v
rm=p._metrics
def m(*a):
    t=time.time(); r=rm(*a); print("metrics", time.time()-t, "verifies", n[0]); return r
p._metrics=m
import asyncio, json, random, time, os
from broker.simulate.network_document import link_of
from broker.desk.reoptimise import *
from broker.desk.proposal import improve
from broker.desk.admit import Admit, Policy
from broker.jobs.plan_work import PlanTask, improve_plans
from broker.core.units import US_PER_S
from broker.store.transfers import Transfer
from broker.core.transfer import Action
from broker.desk.release import End
from tests.desk.world import world
import pickle

async def test_scale(database_url, clock):
    n = int(os.environ.get("N", "500"))
    doc = json.load(open("/work/shared/data/esnet-network.json"))
    links = [link_of(l) for l in doc["links"]]
    nodes = sorted({l.source for l in links})
    dice = random.Random(1)
    async with world(database_url, clock) as w:
        await w.links(*links)
        asks = []
        for _ in range(n):
            a, b = dice.sample(nodes, 2)
            begin = clock.now_us + dice.randrange(60, 6 * 3600) * US_PER_S
            asks.append(w.ask(dice.randrange(10**12, 3 * 10**13), a, b, not_before_us=begin, deadline_us=begin + dice.randrange(3600, 12 * 3600) * US_PER_S, planner="alap"))
        t = time.time()
        got = []
        for i in range(0, n, 100):
            got += await asyncio.wait_for(w.desks[0].submit(Admit(asks[i:i+100], "me", Policy())), 300)
        ok = [g for g in got if isinstance(g, Transfer)]
        print("admitted", len(ok), "of", n, time.time() - t)
        for obj in os.environ.get("OBJ", "congestion,completion").split(","):
            t = time.time()
            async with w.look.transaction() as c:
                snap = await read(c, clock(), clock() + 30 * US_PER_S, Chosen(), 100000)
            t1 = time.time()
            p = pickle.dumps(snap)
            t2 = time.time()
            prop = improve_plans(PlanTask(snap, obj, 20), lambda s, x: None)
            t3 = time.time()
            print(obj, "read", t1 - t, "pickle", t2 - t1, len(p), "solve", t3 - t2, "moved", len(prop.changes), prop.before, prop.after, prop.solver, prop.note)
            if prop.changes:
                ag = Agreement.of(prop, prop.cut_us)
                t = time.time()
                await asyncio.wait_for(w.desks[0].submit(Apply(ag, "me")), 300)
                print("apply", time.time() - t, "doc", len(json.dumps(result_document(prop, ag, applied=True, rounds=1, most=10000))))
