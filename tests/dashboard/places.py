# SPDX-License-Identifier: Apache-2.0
"""Where the routers of tests/data/esnet-network.json stand: the town or laboratory that the name says, to a tenth of a degree.

Written for these tests from general knowledge of geography: good enough for a map to look like the network, and for nothing else.
"""

# (latitude, longitude, place, the routers there without their "-cr6")
_SITES: tuple[tuple[float, float, str, str], ...] = (
    (35.1, -106.6, "Albuquerque", "albq"),
    (42.0, -93.6, "Ames Laboratory", "ameshwh ameshwhb"),
    (41.7, -88.0, "Argonne", "anl221 anl541b"),
    (33.7, -84.4, "Atlanta", "atla"),
    (40.9, -72.9, "Brookhaven", "bnl515 bnl515b bnl725"),
    (43.6, -116.2, "Boise", "bois"),
    (42.4, -71.1, "Boston", "bost"),
    (46.2, 6.1, "CERN", "cern513 cern773"),
    (35.0, -85.3, "Chattanooga", "chat"),
    (41.9, -87.6, "Chicago", "chic star eqxch2"),
    (39.7, -105.0, "Denver", "denv"),
    (31.8, -106.5, "El Paso", "elpa"),
    (52.3, 4.9, "Amsterdam", "eqxam3"),
    (32.8, -96.8, "Dallas", "eqxda3"),
    (39.0, -77.5, "Ashburn", "eqxdc4"),
    (51.5, 0.0, "London", "eqxld8"),
    (37.2, -121.8, "San Jose", "eqxsv5"),
    (41.8, -88.3, "Fermilab", "fnalfcc fnalgcc"),
    (38.9, -77.0, "Washington, Forrestal", "forrestal"),
    (42.7, -84.5, "FRIB", "frib-cr6a frib-cr6b"),
    (32.9, -117.2, "General Atomics", "ga"),
    (39.2, -77.3, "Germantown", "germantown"),
    (29.8, -95.4, "Houston", "hous"),
    (43.5, -112.0, "Idaho", "inleil inlerob"),
    (37.1, -76.5, "Jefferson Laboratory", "jlab12 jlab205"),
    (39.1, -94.6, "Kansas City", "kans"),
    (38.9, -94.6, "Kansas City Campus", "kcnsc"),
    (35.9, -106.3, "Los Alamos", "lanlta03 lanlta50"),
    (36.2, -115.1, "Las Vegas", "lasv"),
    (37.9, -122.2, "Berkeley", "lbnl50 lbnl59 lbnl59qa-cr6a lbnl59qa-cr6b"),
    (37.7, -121.7, "Livermore", "llnl snlca902"),
    (34.1, -118.2, "Los Angeles", "losa"),
    (36.2, -86.8, "Nashville", "nash"),
    (44.6, -123.3, "Albany, Oregon", "netlalb"),
    (39.7, -79.9, "Morgantown", "netlmgn"),
    (40.3, -80.0, "Pittsburgh", "netlpgh"),
    (40.7, -74.0, "New York", "newy325hudson newy32aoa"),
    (36.3, -115.4, "Nevada Site", "nnss"),
    (39.8, -105.3, "Golden", "nrelesif nrelrsf"),
    (36.0, -84.3, "Oak Ridge", "orau ornl1064 ornl5600 osti y12 y12co"),
    (35.3, -101.6, "Pantex", "pantex pantex1237"),
    (46.3, -119.3, "Richland", "pnnlemsl pnnlisb2"),
    (40.4, -74.6, "Princeton", "pppl ppploit128"),
    (38.6, -121.5, "Sacramento", "sacr"),
    (40.8, -111.9, "Salt Lake City", "salt"),
    (32.7, -117.1, "San Diego", "sand"),
    (47.6, -122.3, "Seattle", "seat"),
    (37.4, -122.3, "SLAC", "slac50n slac50s"),
    (37.5, -121.9, "Sunnyvale", "sunn"),
    (35.0, -106.5, "Sandia", "snlnm"),
    (33.3, -81.7, "Savannah River", "srs702a srs70344a"),
    (38.9, -76.9, "Washington", "wash"),
)  # fmt: skip
_APART = 0.12  # degrees between routers of one place, so that each can be pointed at


def nodes() -> list[dict[str, object]]:
    """As PUT /v1/topology takes them."""
    found: list[dict[str, object]] = []
    for latitude, longitude, place, routers in _SITES:
        for number, router in enumerate(routers.split()):
            name = place if number == 0 else f"{place} {number + 1}"
            shifted = {"latitude": round(latitude - number * _APART, 2), "longitude": round(longitude + number * _APART, 2)}
            found.append({"id": router if "-cr6" in router else f"{router}-cr6", "name": name, **shifted})
    return found
